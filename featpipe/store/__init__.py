"""The dictionary: one HDF5 file of keyed rows. Knows no torch and no documents.

Reading and writing are here; whole files are handled by :mod:`verify <featpipe.store.verify>`,
:mod:`compact <featpipe.store.rewrite>`, :mod:`merge <featpipe.store.rewrite>`,
:mod:`export <featpipe.store.export>`, :mod:`inspect <featpipe.store.inspect>` and
:mod:`import_old <featpipe.store.import_vectors>`.
"""

from featpipe.store.keys import key_of, keys_of
from featpipe.store.reader import Reader
from featpipe.store.schema import Column, Ragged, TableSpec
from featpipe.store.table_reader import TableReader
from featpipe.store.table_writer import TableWriter
from featpipe.store.writer import Writer

__all__ = [
    "Column",
    "Ragged",
    "Reader",
    "TableReader",
    "TableSpec",
    "TableWriter",
    "Writer",
    "key_of",
    "keys_of",
]

"""The dictionary: one HDF5 file of keyed rows. Independent of torch and of documents.

:mod:`verify <featpipe.store.verify>`, :mod:`rewrite <featpipe.store.rewrite>` (compaction, merge),
:mod:`export <featpipe.store.export>` and :mod:`import_vectors <featpipe.store.import_vectors>`
handle whole files.
"""

from featpipe.store.folder_reader import FolderReader
from featpipe.store.keys import key_of, keys_of, list_texts
from featpipe.store.open_reader import local_path, open_reader
from featpipe.store.reader import Reader
from featpipe.store.schema import Column, Ragged, TableSpec
from featpipe.store.table_reader import TableReader
from featpipe.store.table_writer import TableWriter
from featpipe.store.writer import Writer

__all__ = [
    "Column",
    "FolderReader",
    "Ragged",
    "Reader",
    "TableReader",
    "TableSpec",
    "TableWriter",
    "Writer",
    "key_of",
    "keys_of",
    "list_texts",
    "local_path",
    "open_reader",
]

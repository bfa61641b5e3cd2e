"""How much of real documents survives loading, against gold and truth that others made.

    python scripts/eval_loaders.py --data ../shared/data [--quick] [--json FILE]

- ``raw/fddc_html``: share of the annotated values of ``fields/fddc_hetong`` that can be located in
  the loaded text: as normalised text (half-width, lower case, without blanks and commas), or, for
  amounts, as a number in the text with its unit;
- ``raw/cuad_pdf_txt``: character similarity (blanks removed, NFKC) of loaded PDF files to their
  texts;
- ``raw/docs_zh``, ``raw/docs_edge``: one line per file. Each is loaded in a process of its own
  under a deadline; every file must end as text or as a named reason.
"""

from __future__ import annotations

import argparse
import difflib
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import unicodedata
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from harness import finish, make_parser, read_lines

from featpipe.documents import load_document
from featpipe.errors import DocumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
DEADLINE_S = 20.0
BARS = {"fddc_located": 0.96, "cuad_pdf_similarity": 0.97}


def members_of(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file in a tar archive."""
    with tarfile.open(archive) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isfile() else None
            if file:
                yield Path(member.name).name, file.read()


def normalised(text: str) -> str:
    """What the annotators compare by."""
    return re.sub(r"[\s,，]", "", unicodedata.normalize("NFKC", text).lower())


DIGITS = {
    c: i for row in ("零一二三四五六七八九", "〇壹贰叁肆伍陆柒捌玖") for i, c in enumerate(row)
}
DIGITS.update({"两": 2, "貳": 2, "叄": 3, "陸": 6})
SMALL = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
LARGE = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
FRACTIONS = {"角": 10, "分": 100}
NUMBER = re.compile(r"(\d+(?:\.\d+)?)([十百千]?[万亿]{0,2})")
WRITTEN = re.compile("[" + "".join({*DIGITS, *SMALL, *LARGE, *FRACTIONS}) + "元圆圓整]{2,}")
COLUMN_UNIT = re.compile(r"[(（:：](?:人民币)?([万亿])元")


def amounts_in(text: str) -> set[Decimal]:
    """Every amount a normalised text states, in its base unit.

    A bare number counts also times the unit that the text gives for a column, as in 单位：万元.
    """
    found: set[Decimal] = set()
    column_units = {LARGE[m[1]] for m in COLUMN_UNIT.finditer(text)}
    for match in NUMBER.finditer(text):
        value = Decimal(match[1])
        for character in match[2]:
            value *= SMALL.get(character) or LARGE[character]
        found.add(value.normalize())
        if not match[2]:
            found.update((value * unit).normalize() for unit in column_units)
    found.update(chinese_amount(m[0]).normalize() for m in WRITTEN.finditer(text))
    return found


def chinese_amount(text: str) -> Decimal:
    """壹亿叁仟万元伍角 -> 130000000.5."""
    total = section = digit = Decimal(0)
    for character in text:
        if character in DIGITS:
            digit = Decimal(DIGITS[character])
        elif character in SMALL:
            section += (digit or 1) * SMALL[character]
            digit = Decimal(0)
        elif character in LARGE:
            total = (
                (total + section + digit) * LARGE[character]
                if LARGE[character] > 10**4
                else (total + (section + digit) * LARGE[character])
            )
            section = digit = Decimal(0)
        elif character in FRACTIONS:
            total += digit / FRACTIONS[character]
            digit = Decimal(0)
        else:
            total += section + digit
            section = digit = Decimal(0)
    return total + section + digit


def eval_fddc(data: Path) -> dict[str, float]:
    """Share of the truth values that are found in the loaded page."""
    pages = dict(members_of(data / "raw" / "fddc_html.tar.xz"))
    n_values: Counter[str] = Counter()
    n_found: Counter[str] = Counter()
    seconds = 0.0
    for record in read_lines(data / "fields" / "fddc_hetong.jsonl.xz"):
        name = f"{record['doc_id']}.html"
        begun = time.perf_counter()
        text = load_document(pages[name], source=name).text
        seconds += time.perf_counter() - begun
        shown = normalised(text)
        amounts: set[Decimal] | None = None
        for field, values in record["fields"].items():
            for value in map(normalised, values):
                is_found = value in shown
                if not is_found and re.fullmatch(r"\d+(?:\.\d+)?", value):
                    amounts = amounts_in(shown) if amounts is None else amounts
                    is_found = Decimal(value).normalize() in amounts
                n_values[field] += 1
                n_found[field] += is_found
    for field, n in n_values.items():
        print(f"  {field:<10} {n_found[field]:>6} of {n:>6}  {n_found[field] / n:.4f}")
    located = n_found.total() / n_values.total()
    print(f"fddc: {located:.4f} of {n_values.total():,} values located; loaded in {seconds:.2f} s")
    return {"fddc_located": round(located, 5), "fddc_values": n_values.total()}


def eval_cuad(data: Path, limit: int | None) -> dict[str, float]:
    """Mean character similarity of loaded PDF files to the texts that come with them."""
    files = dict(members_of(data / "raw" / "cuad_pdf_txt.tar.xz"))
    ratios = []
    for name in sorted(n for n in files if n.endswith(".pdf"))[:limit]:
        gold = bare(files[name[:-3] + "txt"].decode("utf-8"))
        document = load_document(files[name], source=name)
        ratio = difflib.SequenceMatcher(None, gold, bare(document.text), autojunk=False).ratio()
        ratios.append(ratio)
        print(f"  {ratio:.4f}  {len(document.pages):>3} pages  {name[:60]}")
    mean = sum(ratios) / len(ratios)
    print(f"cuad: mean similarity {mean:.4f} over {len(ratios)} files, worst {min(ratios):.4f}")
    return {"cuad_pdf_similarity": round(mean, 5), "cuad_pdf_worst": round(min(ratios), 5)}


def bare(text: str) -> str:
    """Text without blanks, in one form of each character; curly quotes count as straight ones."""
    plain = unicodedata.normalize("NFKC", text).translate(str.maketrans("“”‘’", "\"\"''"))
    return re.sub(r"[\s\u200b\ufeff]", "", plain)


def eval_files(data: Path, names: tuple[str, ...]) -> dict[str, float]:
    """Load each file in its own process, under a deadline, and account for it."""
    n_files = n_unaccounted = n_over = 0
    for folder in names:
        with tempfile.TemporaryDirectory() as temporary:
            for name, content in sorted(members_of(data / "raw" / f"{folder}.tar.xz")):
                path = Path(temporary) / name
                path.write_bytes(content)
                outcome, seconds = load_apart(path)
                n_files += 1
                n_unaccounted += outcome is None
                n_over += seconds > DEADLINE_S + 1
                print(f"  {seconds:5.2f} s  {name[:44]:<44}  {outcome or 'NOT ACCOUNTED FOR'}")
    print(f"files: {n_files}, unaccounted {n_unaccounted}, over the deadline {n_over}")
    return {"files": n_files, "files_unaccounted": n_unaccounted, "over_deadline": n_over}


def load_apart(path: Path) -> tuple[str | None, float]:
    """What became of a file, or None for a crash without a reason; and the seconds it took."""
    command = [sys.executable, __file__, "--one", str(path)]
    begun = time.perf_counter()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"quarantined: past its deadline of {DEADLINE_S:g} s", time.perf_counter() - begun
    seconds = time.perf_counter() - begun
    last = done.stdout.strip().splitlines()[-1:]
    return (last[0] if last and not done.returncode else None), seconds


def show_one(path: Path) -> None:
    """Print what becomes of one file, on one line."""
    try:
        document = load_document(path.read_bytes(), source=path.name)
    except DocumentError as error:
        print(f"{type(error).__name__}: {error.message.removeprefix(path.name + ': ')}")
        return
    parts = [document.loader, f"{len(document.text):,} characters"]
    parts += [f"{len(document.pages)} pages"] if document.pages else []
    parts += [f"{len(document.tables)} tables"] if document.tables else []
    print("; ".join([*parts, *document.notes]).replace("\n", " "))


def main() -> int:
    """Run all evaluations; 1 when a bar is missed."""
    parser = make_parser(__doc__)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        show_one(arguments.one)
        return 0
    figures = eval_fddc(arguments.data)
    figures |= eval_cuad(arguments.data, 5 if arguments.quick else None)
    figures |= eval_files(arguments.data, ("docs_zh", "docs_edge"))
    missed = [key for key, bar in BARS.items() if figures[key] < bar]
    missed += [key for key in ("files_unaccounted", "over_deadline") if figures[key]]
    if missed:
        print(f"below the bar: {', '.join(missed)}")
    finish("eval_loaders", arguments, figures)
    return bool(missed)


if __name__ == "__main__":
    raise SystemExit(main())

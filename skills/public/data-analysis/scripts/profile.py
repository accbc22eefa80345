"""Prints a profile of a table: python3 profile.py FILE [TABLE]. Needs only Python."""

import csv
import json
import sqlite3
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path

MOST_ROWS = 1_000_000
MOST_DISTINCT = 10_000
EMPTY = {"", "na", "n/a", "nan", "null", "none", "-"}


def rows_of_csv(path):
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        start = file.read(64 * 1024)
        file.seek(0)
        try:
            dialect = csv.Sniffer().sniff(start, delimiters=",;\t|")
        except csv.Error:
            dialect = csv.excel_tab if path.suffix == ".tsv" else csv.excel
        reader = csv.DictReader(file, dialect=dialect)
        for row in reader:
            if None in row:
                row["(cells beyond the header)"] = "|".join(row.pop(None))
            yield row


def rows_of_json_lines(path):
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for line in file:
            if line.strip():
                value = json.loads(line)
                yield value if isinstance(value, dict) else {"value": value}


def rows_of_sqlite(path, table):
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    base.row_factory = sqlite3.Row
    tables = [name for (name,) in base.execute("select name from sqlite_master where type in ('table', 'view') order by name")]
    if table is None:
        for name in tables:
            quoted = name.replace('"', '""')
            (count,) = base.execute(f'select count(*) from "{quoted}"').fetchone()
            print(f"table {name}: {count} rows")
        sys.exit("pass the name of a table as the second argument to profile it" if tables else "the file has no tables")
    if table not in tables:
        sys.exit(f"there is no table {table!r}; the tables are: {', '.join(tables)}")
    quoted = table.replace('"', '""')
    for row in base.execute(f'select * from "{quoted}"'):
        yield dict(row)


def as_number(text):
    try:
        return float(text.replace(" ", "").replace("%", "").replace(",", "") if isinstance(text, str) else text)
    except (TypeError, ValueError):
        return None


def as_date(text):
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%d.%m.%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y-%m"):
        try:
            return datetime.strptime(text[:19], form)
        except (TypeError, ValueError):
            continue
    return None


class Column:
    def __init__(self, name):
        self.name, self.filled, self.padded = name, 0, 0
        self.values, self.numbers, self.dates, self.more = Counter(), [], [], False

    def add(self, value):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        if value is None or text.strip().lower() in EMPTY:
            return
        self.filled += 1
        self.padded += text != text.strip()
        text = text.strip()
        if len(self.values) < MOST_DISTINCT or text in self.values:
            self.values[text] += 1
        else:
            self.more = True
        number = None if isinstance(value, bool) else as_number(value)
        if number is not None:
            self.numbers.append(number)
        elif isinstance(value, str) and (date := as_date(text)):
            self.dates.append(date)

    def describe(self, rows):
        print(f"\n{self.name}")
        empty = rows - self.filled
        print(f"  filled {self.filled}, empty {empty} ({empty / rows:.1%}), distinct {'over ' if self.more else ''}{len(self.values)}")
        if self.padded:
            print(f"  {self.padded} values have spaces around them")
        if self.numbers and len(self.numbers) == self.filled:
            self.describe_numbers()
        elif self.dates and len(self.dates) == self.filled:
            print(f"  dates from {min(self.dates):%Y-%m-%d} to {max(self.dates):%Y-%m-%d}")
        elif self.numbers or self.dates:
            print(f"  mixed: {len(self.numbers)} numbers, {len(self.dates)} dates, {self.filled - len(self.numbers) - len(self.dates)} texts")
        if len(self.values) == self.filled == rows:
            print("  unique: every value occurs once")
        else:
            common = ", ".join(f"{text[:40]!r} x{count}" for text, count in self.values.most_common(5))
            print(f"  most often: {common}" if common else "  empty")

    def describe_numbers(self):
        ordered = sorted(self.numbers)
        at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
        low, middle, high = at(0.25), at(0.5), at(0.75)
        reach = 3 * (high - low)
        odd = sum(number < low - reach or number > high + reach for number in ordered) if reach else 0
        print(f"  numbers from {ordered[0]:g} to {ordered[-1]:g}, mean {sum(ordered) / len(ordered):.6g}, quartiles {low:g} / {middle:g} / {high:g}")
        negative, zero = sum(number < 0 for number in ordered), sum(number == 0 for number in ordered)
        print(f"  negative {negative}, zero {zero}, far outside the quartiles {odd}")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    path = Path(sys.argv[1])
    if not path.is_file():
        sys.exit(f"the file {path} does not exist")
    if path.suffix in (".db", ".sqlite", ".sqlite3"):
        rows = rows_of_sqlite(path, sys.argv[2] if len(sys.argv) == 3 else None)
    elif path.suffix in (".jsonl", ".ndjson"):
        rows = rows_of_json_lines(path)
    else:
        rows = rows_of_csv(path)
    columns, count, seen, twice = {}, 0, set(), 0
    for row in rows:
        if count == MOST_ROWS:
            print(f"only the first {MOST_ROWS} rows are profiled")
            break
        count += 1
        fingerprint = hash(json.dumps(row, sort_keys=True, default=str))
        twice += fingerprint in seen
        seen.add(fingerprint)
        for name, value in row.items():
            columns.setdefault(name, Column(name)).add(value)
    print(f"{path.name}: {count} rows, {len(columns)} columns, {twice} rows that repeat another")
    for column in columns.values():
        column.describe(count)


if __name__ == "__main__":
    main()

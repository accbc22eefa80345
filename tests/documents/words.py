"""Extracts the readable text of a flat ODF file: printed (NAME.txt), not printed (NAME.aside.txt), and comments (NAME.comments.txt).

Usage: words.py FOLDER SOURCE..

Knows nothing of how the sources are converted: it takes the text of what they say, paragraph by paragraph.
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree

NAMES = "urn:oasis:names:tc:opendocument:xmlns:"
OFFICE, TEXT, TABLE, STYLE, PRESENTATION = (
    f"{{{NAMES}{name}:1.0}}" for name in ("office", "text", "table", "style", "presentation")
)
PARAGRAPHS = {f"{TEXT}p", f"{TEXT}h"}
BLANKS = {f"{TEXT}s": " ", f"{TEXT}tab": "\t", f"{TEXT}line-break": "\n"}
# Visible in the office program, not in print.
COMMENT, NOTES = f"{OFFICE}annotation", f"{PRESENTATION}notes"
# Deleted text, and the number of a note, which belongs to no sentence.
UNSEEN = {f"{TEXT}tracked-changes", f"{TEXT}note-citation"}


class Reader:
    def __init__(self, root):
        self.printed, self.aside, self.comments = [], [], []
        self.hidden = {
            style.get(f"{STYLE}name")
            for style in root.iter(f"{STYLE}style")
            if any(part.get(f"{TABLE}display") == "false" for part in style)
        }
        sheets = root.find(f"{OFFICE}body/{OFFICE}spreadsheet")
        for place in [*root.iter(f"{STYLE}header"), *root.iter(f"{STYLE}footer"), root.find(f"{OFFICE}body")]:
            self.read(place, self.printed)
        for sheet in [] if sheets is None else sheets:
            if sheet.get(f"{TABLE}style-name") not in self.hidden:
                self.aside.append(sheet.get(f"{TABLE}name"))

    def read(self, element, into):
        """Returns the paragraphs within an element; those within a paragraph, such as a footnote's, follow it."""
        if element.tag in UNSEEN or element.get(f"{TABLE}style-name") in self.hidden:
            return
        into = {COMMENT: self.comments, NOTES: self.aside}.get(element.tag, into)
        if element.tag in PARAGRAPHS:
            within = []
            into.append(self.line(element, within))
        else:
            within = list(element)
        for part in within:
            self.read(part, into)

    def line(self, element, within):
        """Returns the text of a paragraph. Nested elements with paragraphs are collected separately."""
        said = element.text or ""
        for part in element:
            if part.tag in BLANKS:
                said += BLANKS[part.tag] * int(part.get(f"{TEXT}c", "1"))
            elif any(inner.tag in PARAGRAPHS for inner in part.iter()):
                within.append(part)
            else:
                said += self.line(part, within)
            said += part.tail or ""
        return said


folder, *sources = map(pathlib.Path, sys.argv[1:])
for source in sources:
    reader = Reader(ElementTree.parse(source).getroot())
    for ending, lines in (("txt", reader.printed), ("aside.txt", reader.aside), ("comments.txt", reader.comments)):
        text = "".join(f"{line.strip()}\n" for line in lines if line.strip())
        if text:
            (folder / f"{source.stem}.{ending}").write_text(text, encoding="utf-8")

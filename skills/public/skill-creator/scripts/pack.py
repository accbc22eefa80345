"""Checks and packs the folder of a skill: python3 pack.py FOLDER TARGET_FOLDER. Needs only Python."""

import re
import sys
import zipfile
from pathlib import Path

KEYS = {
    "name", "description", "license", "allowed-tools", "metadata", "compatibility", "version", "author", "required-secrets",
    "secrets-autonomous",
}
ARCHIVES = {".zip", ".skill", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".jar", ".war", ".whl", ".cab", ".iso"}
PROGRAMS = (b"\x7fELF", b"MZ", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
MOST_BYTES = 512 * 1024 * 1024
MOST_FILES = 4096


def top_level(text):
    """Returns the keys of the front matter with the first line of each value."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---" or "---" not in [line.rstrip() for line in lines[1:]]:
        sys.exit("SKILL.md must begin with a line ---, the frontmatter, and another line ---")
    end = 1 + [line.rstrip() for line in lines[1:]].index("---")
    found, last = {}, None
    for line in lines[1:end]:
        match = re.match(r"([A-Za-z0-9_-]+):\s*(.*)$", line)
        if match:
            last = match.group(1)
            found[last] = match.group(2).strip()
        elif last and line.strip():
            found[last] = (found[last].removeprefix(">").removeprefix("|").strip() + " " + line.strip()).strip()
    return found


def problems(folder):
    skill = folder / "SKILL.md"
    if not skill.is_file():
        yield "there is no SKILL.md"
        return
    head = top_level(skill.read_text(encoding="utf-8"))
    for key in head.keys() - KEYS:
        yield f"the key `{key}` is not allowed"
    name, description = head.get("name", "").strip("'\""), head.get("description", "").strip("'\"")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) or len(name) > 64:
        yield f"the name {name!r} must have lower-case letters, digits and single hyphens, 64 characters at most"
    if name != folder.name:
        yield f"the name of the folder, {folder.name!r}, differs from the name of the skill, {name!r}"
    if not description or len(description) > 1024 or "<" in description or ">" in description:
        yield "the description is missing, longer than 1024 characters, or contains an angle bracket"
    if ": " in head.get("description", "") and head["description"][0] not in "'\"":
        yield "the description contains a colon: put it in quotes"
    files = files_of(folder)
    if len(files) > MOST_FILES or sum(file.stat().st_size for file in files) > MOST_BYTES:
        yield "there are more than 4096 files, or more than 512 MiB"
    for file in files:
        shown = file.relative_to(folder)
        if file.is_symlink():
            yield f"{shown} is a link"
        elif file.name.lower() == "skill.md" and file != skill:
            yield f"{shown} is a second SKILL.md"
        elif file.suffix.lower() in ARCHIVES:
            yield f"{shown} is an archive"
        elif file.open("rb").read(8).startswith(PROGRAMS):
            yield f"{shown} is a compiled program"
        if re.search(r'[\\:\x00-\x1f]', str(shown)):
            yield f"the name {str(shown)!r} contains characters that are not allowed"


def files_of(folder):
    hidden = lambda path: any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(folder).parts)
    return sorted(path for path in folder.rglob("*") if not path.is_dir() and not hidden(path))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, target = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    if not folder.is_dir():
        sys.exit(f"there is no folder {folder}")
    found = list(problems(folder))
    if found:
        sys.exit("\n".join(found))
    target.mkdir(parents=True, exist_ok=True)
    archive = target / f"{folder.name}.skill"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in files_of(folder):
            packed.write(file, Path(folder.name) / file.relative_to(folder))
    print(f"{archive} is ready to be installed")


if __name__ == "__main__":
    main()

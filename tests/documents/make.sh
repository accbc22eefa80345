#!/usr/bin/env bash
# Builds the documents of made/ and their readable text from the flat ODF files of sources/, with LibreOffice.
# The output is committed, so that the tests need no LibreOffice: run it again when a source is changed or added.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source ../packages.sh

command -v soffice >/dev/null || install_packages libreoffice-{writer,calc,impress}-nogui
command -v python3 >/dev/null || install_packages python3
# The fonts that the sources use.
for package in fonts-liberation fonts-dejavu-core fonts-noto-cjk; do
    dpkg --status "$package" >/dev/null 2>&1 || install_packages "$package"
done

# A separate profile, so that the settings of the current user have no effect.
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
mkdir "$profile/user"
# The thumbnail of the first slide would be most of the size of an old presentation.
cat >"$profile/user/registrymodifications.xcu" <<'XCU'
<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
  <item oor:path="/org.openoffice.Office.Common/Filter/Microsoft/Export">
    <prop oor:name="EnablePowerPointPreview" oor:op="fuse"><value>false</value></prop>
  </item>
</oor:items>
XCU
rm -rf made
mkdir made

# convert ENDING SOURCE..: converts sources to the format of this ending.
convert() {
    soffice -env:UserInstallation="file://$profile" --headless --convert-to "$1" --outdir made "${@:2}" >/dev/null
}
for ending in docx doc pdf; do convert "$ending" sources/*.fodt; done
for ending in xlsx xls pdf; do convert "$ending" sources/*.fods; done
for ending in pptx ppt pdf; do convert "$ending" sources/*.fodp; done
python3 words.py made sources/*.fod?

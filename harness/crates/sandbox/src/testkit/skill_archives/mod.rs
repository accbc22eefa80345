//! Skill archives for tests: valid ones, and hostile ones that a receiver must reject.

mod hostile;

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

pub use hostile::hostile;

/// Returns the skill file of a skill of this name.
pub fn skill_text(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}\n---\n\n# {name}\n")
}

/// Entry of an archive, with a free choice of every header field.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Name in the central directory.
    pub name: Vec<u8>,
    /// Name in the local header, if different.
    pub local_name: Option<Vec<u8>>,
    /// Data, uncompressed.
    pub data: Vec<u8>,
    /// File type and permissions.
    pub mode: u32,
    /// Flags; bit 0 is encryption, bit 11 is UTF-8.
    pub flags: u16,
    /// Compression method in the headers.
    pub method: u16,
    /// Uncompressed size in the headers, if different.
    pub said: Option<u32>,
    /// Checksum in the headers, if different.
    pub said_crc: Option<u32>,
    /// Offset in the central directory, if different.
    pub offset: Option<u32>,
    /// Extra fields in the central directory.
    pub fields: Vec<u8>,
    /// Comment in the central directory.
    pub comment: Vec<u8>,
}

impl Entry {
    /// Creates a regular file.
    pub fn file(name: &str, data: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.as_bytes().to_vec(),
            local_name: None,
            data: data.into(),
            mode: 0o100_644,
            flags: 1 << 11,
            method: 0,
            said: None,
            said_crc: None,
            offset: None,
            fields: Vec::new(),
            comment: Vec::new(),
        }
    }

    /// Returns the entry with another type and permissions.
    #[must_use]
    pub fn mode(self, mode: u32) -> Self {
        Self { mode, ..self }
    }
}

/// Builds an archive of these entries.
pub fn archive(entries: &[Entry]) -> Vec<u8> {
    archive_with_count(entries, u16::try_from(entries.len()).unwrap_or(u16::MAX))
}

/// Builds an archive whose header states this number of entries.
pub fn archive_with_count(entries: &[Entry], count: u16) -> Vec<u8> {
    let (mut bytes, mut contents) = (Vec::new(), Vec::new());
    for entry in entries {
        let offset = entry.offset.unwrap_or(small(bytes.len()));
        let local_name = entry.local_name.as_ref().unwrap_or(&entry.name);
        bytes.extend(b"PK\x03\x04\x14\x00");
        bytes.extend(entry.facts(local_name.len(), 0));
        bytes.extend(local_name);
        bytes.extend(&entry.data);
        contents.extend(b"PK\x01\x02\x14\x03\x14\x00");
        contents.extend(entry.facts(entry.name.len(), entry.fields.len()));
        contents.extend(
            u16::try_from(entry.comment.len())
                .unwrap_or(u16::MAX)
                .to_le_bytes(),
        );
        contents.extend([0; 4]);
        contents.extend((entry.mode << 16).to_le_bytes());
        contents.extend(offset.to_le_bytes());
        contents.extend(&entry.name);
        contents.extend(&entry.fields);
        contents.extend(&entry.comment);
    }
    let start = small(bytes.len());
    let length = small(contents.len());
    bytes.extend(contents);
    bytes.extend(b"PK\x05\x06\x00\x00\x00\x00");
    bytes.extend(count.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

impl Entry {
    /// Returns the fields common to both headers, from the flags to the length of the extra fields.
    fn facts(&self, name_length: usize, fields_length: usize) -> Vec<u8> {
        let mut facts = Vec::new();
        facts.extend(self.flags.to_le_bytes());
        facts.extend(self.method.to_le_bytes());
        // Midnight of the first of January 1980.
        facts.extend([0, 0, 0x21, 0]);
        facts.extend(self.said_crc.unwrap_or(crc(&self.data)).to_le_bytes());
        facts.extend(small(self.data.len()).to_le_bytes());
        facts.extend(self.said.unwrap_or(small(self.data.len())).to_le_bytes());
        facts.extend(
            [name_length, fields_length]
                .map(|length| u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes())
                .concat(),
        );
        facts
    }
}

/// Builds a valid archive with compressed entries.
pub fn compressed(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, data) in entries {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        zip.start_file(*name, options).expect("an entry");
        zip.write_all(data).expect("its bytes");
    }
    zip.finish().expect("an archive").into_inner()
}

fn small(length: usize) -> u32 {
    u32::try_from(length).expect("an archive of a test is small")
}

/// Returns the CRC-32 of ZIP archives.
pub fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                (crc >> 1) ^ 0xEDB8_8320
            } else {
                crc >> 1
            }
        })
    })
}

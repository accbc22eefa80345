//! Encrypted files for the bot, and uploads of the bot.

use std::collections::HashMap;

use aes::Aes256;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use cbc::Encryptor;
use cbc::cipher::{BlockModeEncrypt, KeyIvInit};
use md5::{Digest, Md5};
use serde_json::{Value, json};

use super::rules::{Refusal, invalid};

/// Name of offered files.
pub(super) const NAME: &str = "report.pdf";
/// Size of all chunks but the last.
pub(super) const CHUNK_BYTES: usize = 512 * 1024;
/// Size to which files are padded.
const PADDED_TO: usize = 32;

/// Upload in progress.
#[derive(Debug)]
struct Upload {
    kind: String,
    name: String,
    size: usize,
    md5: String,
    chunks: Vec<Option<Vec<u8>>>,
}

/// Uploads, and the files that they became.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    count: u64,
    open: HashMap<String, Upload>,
    /// Name and content by media id.
    pub(super) media: HashMap<String, (String, Vec<u8>)>,
}

/// Encrypts a file as the platform does: AES-256-CBC, the first half of the key as the vector,
/// padded to blocks of 32 bytes.
pub fn encrypt(content: &[u8], key: &[u8; 32]) -> Vec<u8> {
    let missing = PADDED_TO - content.len() % PADDED_TO;
    let mut bytes = content.to_vec();
    bytes.extend(std::iter::repeat_n(missing as u8, missing));
    let mut vector = [0; 16];
    vector.copy_from_slice(&key[..16]);
    let mut encryptor = Encryptor::<Aes256>::new(&(*key).into(), &vector.into());
    for block in bytes.chunks_exact_mut(16) {
        let mut whole = [0; 16];
        whole.copy_from_slice(block);
        let mut whole = whole.into();
        encryptor.encrypt_block(&mut whole);
        block.copy_from_slice(&whole);
    }
    bytes
}

/// Encodes a key as in messages: without padding.
pub(super) fn encode_key(key: &[u8; 32]) -> String {
    STANDARD_NO_PAD.encode(key)
}

/// Begins an upload.
pub(super) fn init(uploads: &mut Uploads, body: &Value) -> Result<Value, Refusal> {
    let text = |key: &str| body[key].as_str().filter(|text| !text.is_empty());
    let number = |key: &str| body[key].as_u64().and_then(|n| usize::try_from(n).ok());
    let (Some(kind), Some(name), Some(md5)) = (text("type"), text("filename"), text("md5")) else {
        return Err(invalid("type, filename and md5 are required"));
    };
    let (Some(size), Some(count)) = (number("total_size"), number("total_chunks")) else {
        return Err(invalid("total_size and total_chunks are required"));
    };
    if !["file", "image", "voice", "video"].contains(&kind) {
        return Err(invalid("unknown type"));
    }
    if size < 5 || count == 0 || count > 100 || count != size.div_ceil(CHUNK_BYTES) {
        return Err(invalid("total_chunks does not match total_size"));
    }
    if kind == "image" && size > 2 * 1024 * 1024 {
        return Err(invalid("the image is too large"));
    }
    if md5.len() != 32 || hex::decode(md5).is_err() {
        return Err(invalid("md5 is not hexadecimal"));
    }
    let upload = Upload {
        kind: kind.to_owned(),
        name: name.to_owned(),
        size,
        md5: md5.to_owned(),
        chunks: vec![None; count],
    };
    uploads.count += 1;
    let id = format!("UP{}", uploads.count);
    uploads.open.insert(id.clone(), upload);
    Ok(json!({"upload_id": id}))
}

/// Takes a chunk. Sending a chunk again replaces it.
pub(super) fn chunk(uploads: &mut Uploads, body: &Value) -> Result<Value, Refusal> {
    let upload = body["upload_id"]
        .as_str()
        .and_then(|id| uploads.open.get_mut(id))
        .ok_or_else(|| invalid("unknown upload_id"))?;
    let count = upload.chunks.len();
    let index = body["chunk_index"]
        .as_u64()
        .and_then(|index| usize::try_from(index).ok())
        .filter(|index| *index < count)
        .ok_or_else(|| invalid("chunk_index is out of range"))?;
    let bytes = body["base64_data"]
        .as_str()
        .and_then(|text| STANDARD.decode(text).ok())
        .ok_or_else(|| invalid("base64_data is invalid"))?;
    let expected = if index + 1 == count {
        upload.size - index * CHUNK_BYTES
    } else {
        CHUNK_BYTES
    };
    if bytes.len() != expected {
        return Err(invalid("the chunk has a wrong size"));
    }
    upload.chunks[index] = Some(bytes);
    Ok(Value::Null)
}

/// Ends an upload.
pub(super) fn finish(uploads: &mut Uploads, body: &Value) -> Result<Value, Refusal> {
    let id = body["upload_id"].as_str().unwrap_or_default();
    let upload = uploads
        .open
        .remove(id)
        .ok_or_else(|| invalid("unknown upload_id"))?;
    let Some(chunks) = upload.chunks.into_iter().collect::<Option<Vec<_>>>() else {
        return Err(invalid("chunks are missing"));
    };
    let bytes = chunks.concat();
    if hex::encode(Md5::digest(&bytes)) != upload.md5 {
        return Err(invalid("md5 does not match"));
    }
    uploads.count += 1;
    let media_id = format!("MEDIA{}", uploads.count);
    uploads.media.insert(media_id.clone(), (upload.name, bytes));
    Ok(json!({"type": upload.kind, "media_id": media_id, "created_at": "1763870000"}))
}

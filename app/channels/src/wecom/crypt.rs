//! Decryption of received files: AES-256-CBC, the first half of the key as the vector, padded to
//! blocks of 32 bytes.

use aes::Aes256;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use cbc::Decryptor;
use cbc::cipher::{BlockModeDecrypt, KeyIvInit};

/// Size of a cipher block.
const BLOCK: usize = 16;
/// Maximum number of bytes of padding.
const MAX_PADDING: usize = 32;
/// Base64 with or without padding.
const KEYS: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Decryption in progress. Its input may arrive in pieces of any size.
pub(super) struct Decryption {
    cipher: Decryptor<Aes256>,
    bytes: Vec<u8>,
    /// Number of decrypted bytes.
    done: usize,
}

impl Decryption {
    /// Begins with a key in Base64. Returns `None` if the key is invalid.
    pub(super) fn new(key: &str) -> Option<Self> {
        let key: [u8; 32] = KEYS.decode(key.trim()).ok()?.try_into().ok()?;
        let vector: [u8; BLOCK] = key[..BLOCK].try_into().ok()?;
        Some(Self {
            cipher: Decryptor::new(&key.into(), &vector.into()),
            bytes: Vec::new(),
            done: 0,
        })
    }

    /// Takes a piece of the input.
    pub(super) fn update(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        while let Some(block) = self.bytes.get_mut(self.done..self.done + BLOCK) {
            let mut whole = [0; BLOCK];
            whole.copy_from_slice(block);
            let mut whole = whole.into();
            self.cipher.decrypt_block(&mut whole);
            block.copy_from_slice(&whole);
            self.done += BLOCK;
        }
    }

    /// Returns the content, or `None` if the input was cut or the key was another one.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        let padding = usize::from(*self.bytes.last()?);
        let is_whole = self.done == self.bytes.len();
        if !is_whole || !(1..=MAX_PADDING).contains(&padding) || padding > self.bytes.len() {
            return None;
        }
        let length = self.bytes.len() - padding;
        let is_valid = self.bytes[length..]
            .iter()
            .all(|byte| usize::from(*byte) == padding);
        self.bytes.truncate(length);
        is_valid.then_some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
    use deerflow_chat_platforms::wecom::encrypt;

    use super::*;

    #[test]
    fn files_are_decrypted_in_pieces_of_any_size() {
        let key = [7; 32];
        for length in [0, 1, 15, 16, 31, 32, 1_000] {
            let content: Vec<u8> = (0..length).map(|index| index as u8).collect();
            let encrypted = encrypt(&content, &key);
            for size in [1, 7, 16, 4_096] {
                let mut decryption = Decryption::new(&STANDARD_NO_PAD.encode(key)).unwrap();
                for piece in encrypted.chunks(size) {
                    decryption.update(piece);
                }
                assert_eq!(decryption.finish(), Some(content.clone()));
            }
        }
    }

    #[test]
    fn wrong_keys_and_cut_files_are_refused() {
        assert!(Decryption::new("short").is_none());
        assert!(Decryption::new("%").is_none());
        let encrypted = encrypt(b"content", &[7; 32]);
        for (key, input) in [
            ([8; 32], &encrypted[..]),
            ([7; 32], &encrypted[..20]),
            ([7; 32], &[]),
        ] {
            let mut decryption = Decryption::new(&STANDARD.encode(key)).unwrap();
            decryption.update(input);
            assert_eq!(decryption.finish(), None);
        }
    }
}

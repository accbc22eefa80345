//! Hostile flow documents: texts that readers, validators and routes must refuse quickly and with
//! all findings.

mod fields;
mod graphs;
mod texts;

use std::borrow::Cow;

/// A document that a client should not send.
#[derive(Debug, Clone)]
pub struct HostileDocument {
    /// Name of its defect, unique in the corpus.
    pub name: Cow<'static, str>,
    /// Bytes as they are sent.
    pub bytes: Vec<u8>,
    /// `true` if no reader may accept it; else it may be valid by chance.
    pub is_invalid: bool,
}

impl HostileDocument {
    fn invalid(name: impl Into<Cow<'static, str>>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            bytes: bytes.into(),
            is_invalid: true,
        }
    }

    fn odd(name: impl Into<Cow<'static, str>>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            is_invalid: false,
            ..Self::invalid(name, bytes)
        }
    }
}

/// Returns more than 1,000 documents, the same ones in each call.
pub fn hostile_documents() -> Vec<HostileDocument> {
    let mut documents = texts::texts();
    documents.extend(graphs::graphs());
    documents.extend(fields::fields());
    documents
}

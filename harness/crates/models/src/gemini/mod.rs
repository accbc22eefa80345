//! Google's Gemini API: the request and the reader of its answers, both pure.
//!
//! Parts of an answer contain signatures that the API requires back on the same parts. The answer
//! parts of [`super::http`] store them.

mod contents;
mod decode;
mod event;
mod generation;
mod request;
mod wire;

pub(crate) use wire::GenerateContent;

/// Key of a part's thought signature.
const SIGNATURE: &str = "thoughtSignature";

//! Chat models: the port, requests and answers, and one folder per wire (the format of a provider's
//! API).
//!
//! To add a provider: 1. a folder with its request and the reader of its answers, both pure: an
//! `http::Wire`, which `http` drives; 2. a row in `kinds.rs`; 3. an arm in `providers.rs`.

mod auxiliary;
mod breaker;
mod catalog;
mod chat_model;
mod classify;
mod concurrency_limit;
mod dependencies;
mod entry;
mod factory;
mod fallback;
mod from_config;
mod kinds;
mod pricing;
#[cfg(feature = "providers")]
mod providers;
mod request;
mod retry;
mod size_limit;
mod tokens;
mod usage_recorder;

#[cfg(feature = "providers")]
mod anthropic;
#[cfg(all(feature = "providers", any(test, feature = "testkit")))]
pub mod decoding_kit;
#[cfg(feature = "providers")]
mod gemini;
#[cfg(feature = "providers")]
pub mod http;
#[cfg(all(feature = "providers", test))]
mod malformed_answers_tests;
#[cfg(feature = "providers")]
mod ollama;
#[cfg(feature = "providers")]
pub mod openai;
#[cfg(feature = "providers")]
mod responses;
pub mod scripted;
mod view;

pub use auxiliary::{AuxiliaryAnswer, AuxiliaryModels, AuxiliaryRequest, Caller};
pub use auxiliary::{json_object, strip_thinking};
pub use breaker::{BreakerPolicy, Breakers, CallPermit, Circuit, CircuitBreaker};
pub use catalog::{ModelCatalog, ModelFacts};
pub use chat_model::{ChatModel, ModelInfo, ModelStream};
pub use deerflow_core::embedder::Embedder;
pub use deerflow_core::model_error::{ModelError, ModelErrorKind};
pub use entry::{ModelEntry, ThinkingUnsupported};
pub use kinds::{ProviderKind, UnknownProvider};
pub use pricing::Pricing;
pub use request::{ModelRequest, ToolSchema};
pub use retry::{Answering, Retry, RetryNotice, RetryPolicy, stream_with_retry};
pub use scripted::ScriptedModel;
pub use tokens::TokenFamily;
pub use usage_recorder::{AUXILIARY_USAGE, UsageRecorder, UsageScope};
pub use view::{ModelList, TokenUsageView};

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::AUXILIARY_USAGE as ASIDE_USAGE;
#[doc(hidden)]
pub use crate::AuxiliaryAnswer as AsideAnswer;
#[doc(hidden)]
pub use crate::AuxiliaryModels as AsideModels;
#[doc(hidden)]
pub use crate::AuxiliaryRequest as Question;
#[doc(hidden)]
pub use crate::Caller as Asker;
#[doc(hidden)]
pub use crate::UsageRecorder as Till;
#[doc(hidden)]
pub use crate::UsageScope as Tab;

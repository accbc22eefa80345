//! Shared code of the integration tests, the SDK tests and the benchmark: a scripted model, an SSE
//! reader, a gateway process.

pub mod chat_fakes;
pub mod fake_engine;
pub mod fault_proxy;
pub mod gateway;
pub mod history;
pub mod local_server;
pub mod process;
pub mod reserved_port;
pub mod scripted_openai;
pub mod scripted_pi_mono;
pub mod seeded_random;
pub mod spread;
pub mod sse;
pub mod usage;

//! WeCom: AI bots over a long connection.
//!
//! Everything but downloads goes through one WebSocket, which a new connection of the same bot
//! takes over. `listen` owns the socket; the other methods send through it.

mod adapter;
mod crypt;
mod decode;
#[cfg(any(test, feature = "testkit"))]
pub(crate) mod decoding_kit;
mod deliver;
mod download;
mod exchange;
mod factory;
mod failure;
mod frame;
mod intake;
mod line;
mod listen;
mod route;
mod upload;

#[cfg(test)]
#[path = "adapter_tests.rs"]
mod adapter_tests;
#[cfg(test)]
mod contract_tests;
#[cfg(test)]
#[path = "failure_tests.rs"]
mod failure_tests;
#[cfg(test)]
#[path = "file_tests.rs"]
mod file_tests;
#[cfg(test)]
mod test_bench;

pub use factory::WeComFactory;

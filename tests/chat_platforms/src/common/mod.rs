//! Parts that all fakes share: the record of calls, scripted faults, the server, and WebSockets.

mod calls;
mod control;
mod faults;
mod rate;
mod server;
mod socket;

pub use calls::{Call, Calls};
pub use control::control_routes;
pub use faults::{Fault, Faults};
pub use rate::Window;
pub use server::Server;
pub use socket::{Socket, accept_socket};

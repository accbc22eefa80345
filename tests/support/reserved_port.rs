//! Port that stays reserved for one test.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpSocket;

/// Port of 127.0.0.1 that the system assigns to no other process during this value's lifetime.
///
/// A socket that is bound and never listens leaves the port to any process that binds it by number.
/// Until such a process listens, connections are refused.
#[derive(Debug)]
pub struct ReservedPort {
    address: SocketAddr,
    _socket: TcpSocket,
}

impl ReservedPort {
    /// Reserves a free port.
    ///
    /// # Errors
    /// Returns an error if the system has none.
    pub fn new() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(([127, 0, 0, 1], 0).into())?;
        Ok(Self {
            address: socket.local_addr()?,
            _socket: socket,
        })
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

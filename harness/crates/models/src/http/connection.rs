//! HTTP/1.1 connection to a provider. It has no task: the future that waits for an answer drives the
//! connection, so a token needs no wake-up of a second task.

use std::convert::Infallible;
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Wake, Waker};
use std::vec;

use bytes::Bytes;
use futures_util::future::poll_fn;
use futures_util::task::AtomicWaker;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Encrypted or plain socket.
pub(super) type Socket = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Reader and writer of a socket.
type Io = Box<http1::Connection<Socket, BodyChunks>>;

/// Body of a request. Its chunks are freed as they are sent.
#[derive(Debug)]
pub(super) struct BodyChunks {
    chunks: vec::IntoIter<Bytes>,
    /// Bytes that are not sent yet.
    left: u64,
}

impl From<Vec<Bytes>> for BodyChunks {
    fn from(chunks: Vec<Bytes>) -> Self {
        Self {
            left: chunks.iter().map(|chunk| chunk.len() as u64).sum(),
            chunks: chunks.into_iter(),
        }
    }
}

impl Body for BodyChunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = self.chunks.next();
        self.left -= chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// Maximum number of rounds of one poll.
const MAX_ROUNDS: usize = 4;

/// Connection that carries one request at a time.
pub(super) struct Connection {
    sender: http1::SendRequest<BodyChunks>,
    /// Reads and writes the socket. `None` once the connection is closed.
    io: Option<Io>,
    exchange: Arc<ExchangeWaker>,
    /// `exchange` as a waker.
    waker: Waker,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("open", &self.io.is_some())
            .finish_non_exhaustive()
    }
}

/// Waker of a request in progress. Its parts, the connection and the response, wake each other
/// while one task polls both of them. Such a wake-up repeats the poll within the task. The task
/// itself is woken only between its polls.
#[derive(Debug, Default)]
struct ExchangeWaker {
    task: AtomicWaker,
    state: AtomicU8,
}

/// The task does not poll the exchange.
const IDLE: u8 = 0;
/// The task polls the exchange.
const POLLING: u8 = 1;
/// A part was woken since the round began.
const WOKEN: u8 = 2;

impl Wake for ExchangeWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let polling = self.state.compare_exchange(POLLING, WOKEN, SeqCst, SeqCst);
        if polling == Err(IDLE) {
            self.task.wake();
        }
    }
}

/// Error of a request.
#[derive(Debug)]
pub(super) struct NotAnswered {
    pub(super) error: hyper::Error,
    /// The request, if no byte of it was sent.
    pub(super) unsent: Option<Request<BodyChunks>>,
}

impl Connection {
    /// Starts HTTP on a connected socket.
    pub(super) async fn start(socket: Socket) -> hyper::Result<Self> {
        let (sender, io) = http1::handshake(socket).await?;
        let exchange = Arc::<ExchangeWaker>::default();
        Ok(Self {
            sender,
            io: Some(Box::new(io)),
            waker: Arc::clone(&exchange).into(),
            exchange,
        })
    }

    /// Sends a request and returns the response when its headers arrive.
    pub(super) async fn send(
        mut self,
        request: Request<BodyChunks>,
    ) -> Result<(Response<Incoming>, Self), NotAnswered> {
        let mut sent = pin!(self.sender.try_send_request(request));
        let response = poll_fn(|cx| self.poll(cx, |cx| sent.as_mut().poll(cx))).await;
        match response {
            Ok(response) => Ok((response, self)),
            Err(mut failure) => Err(NotAnswered {
                unsent: failure.take_message(),
                error: failure.into_error(),
            }),
        }
    }

    /// Returns the next bytes of the response whose body is `body`, and `None` at its end.
    pub(super) async fn chunk(&mut self, body: &mut Incoming) -> hyper::Result<Option<Bytes>> {
        loop {
            let frame = poll_fn(|cx| self.poll(cx, |cx| Pin::new(&mut *body).poll_frame(cx))).await;
            let Some(frame) = frame.transpose()? else {
                return Ok(None);
            };
            // Trailers have no data.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }

    /// Reports whether `body` has ended, after processing what the socket has received. Further data
    /// counts as no end.
    pub(super) fn has_ended(&mut self, body: &mut Incoming) -> bool {
        let cx = &mut Context::from_waker(Waker::noop());
        matches!(
            self.poll(cx, |cx| Pin::new(&mut *body).poll_frame(cx)),
            Poll::Ready(None)
        )
    }

    /// Reports whether the connection is open, as far as it is known.
    pub(super) fn is_open(&self) -> bool {
        self.io.is_some()
    }

    /// Reports whether another request can be sent, after processing what the socket has received.
    /// The last response must have ended.
    pub(super) fn is_reusable(&mut self) -> bool {
        drive(&mut self.io, &mut Context::from_waker(Waker::noop()));
        self.is_open() && self.sender.is_ready()
    }

    /// Polls a part of the request in progress, and the connection while the part is not ready.
    fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut part: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.exchange.task.register(cx.waker());
        let within = &mut Context::from_waker(&self.waker);
        for _ in 0..MAX_ROUNDS {
            self.exchange.state.store(POLLING, SeqCst);
            let mut polled = part(within);
            if polled.is_pending() {
                drive(&mut self.io, within);
                polled = part(within);
            }
            let woken = self.exchange.state.swap(IDLE, SeqCst) == WOKEN;
            if polled.is_ready() || !woken {
                return polled;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Reads and writes what the socket allows. The request or the body in progress reports errors.
fn drive(io: &mut Option<Io>, cx: &mut Context<'_>) {
    if let Some(open) = io
        && Pin::new(&mut **open).poll(cx).is_ready()
    {
        *io = None;
    }
}

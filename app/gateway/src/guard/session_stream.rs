//! Streamed responses that break when their session ends, while what they report goes on.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt};
use harness::runtime::tasks::{TaskKind, Tasks};

/// Interval of the checks of an open stream's session.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Marks a response whose body has no end and reports nothing, so that no task reads it further.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndlessBody;

/// Binds a body to a session. After the session, `tasks` read the rest of the body. Bodies of known length are complete and stay unchanged. `has_ended`
/// is polled in an interval; when it returns `true`, the connection breaks.
pub(crate) fn bind<F>(
    body: Body,
    tasks: Option<Tasks>,
    has_ended: impl Fn() -> F + Send + 'static,
) -> Body
where
    F: Future<Output = bool> + Send,
{
    if body.size_hint().exact().is_some() {
        return body;
    }
    let end = async move {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            if has_ended().await {
                return;
            }
        }
    };
    Body::from_stream(SessionStream {
        inner: Some(body.into_data_stream()),
        end: Box::pin(end),
        tasks,
    })
}

struct SessionStream {
    /// Body; `None` after the end of the session.
    inner: Option<BodyDataStream>,
    end: BoxFuture<'static, ()>,
    tasks: Option<Tasks>,
}

impl SessionStream {
    /// Reads the rest of the body in a task: a dropped body is a disconnect of the client, which may
    /// cancel the run.
    fn detach(&mut self) {
        if let (Some(mut inner), Some(tasks)) = (self.inner.take(), &self.tasks) {
            tasks.spawn(
                TaskKind::Service,
                "stream of an ended session",
                async move { while inner.next().await.is_some() {} },
            );
        }
    }
}

impl Stream for SessionStream {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.inner.is_some() && self.end.as_mut().poll(cx).is_ready() {
            self.detach();
            let error = io::Error::new(io::ErrorKind::ConnectionAborted, "the session has ended");
            return Poll::Ready(Some(Err(axum::Error::new(error))));
        }
        match &mut self.inner {
            Some(inner) => inner.poll_next_unpin(cx),
            None => Poll::Ready(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;

    /// Body of the received texts.
    fn texts(receiver: mpsc::Receiver<&'static str>) -> Body {
        let next = async |mut receiver: mpsc::Receiver<&'static str>| {
            let text = receiver.recv().await?;
            Some((Ok::<_, io::Error>(text), receiver))
        };
        Body::from_stream(futures_util::stream::unfold(receiver, next))
    }

    #[tokio::test(start_paused = true)]
    async fn stream_breaks_within_5_seconds_and_its_source_is_read_on() {
        let (sender, receiver) = mpsc::channel(1);
        let ended = Arc::new(AtomicBool::new(false));
        let flag = ended.clone();
        let body = bind(texts(receiver), Some(Tasks::new()), move || {
            let ended = flag.load(Ordering::Relaxed);
            async move { ended }
        });
        let mut stream = body.into_data_stream();
        sender.send("one").await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), "one");
        tokio::time::advance(CHECK_INTERVAL * 5).await;
        sender.send("two").await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), "two");
        ended.store(true, Ordering::Relaxed);
        let since = Instant::now();
        let error = stream.next().await.unwrap().unwrap_err();
        assert!(
            error.to_string().contains("the session has ended"),
            "{error}"
        );
        assert!(since.elapsed() < Duration::from_secs(5));
        assert!(stream.next().await.is_none());
        drop(stream);
        for text in ["three", "four", "five"] {
            sender.send(text).await.unwrap();
        }
    }

    #[tokio::test]
    async fn complete_body_is_unchanged() {
        let body = bind(Body::from("whole"), Some(Tasks::new()), || async { true });
        assert_eq!(body.size_hint().exact(), Some(5));
    }
}

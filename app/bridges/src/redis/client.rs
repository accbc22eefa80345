//! Requests of a node to the Redis server, over three connections: appends, reads and signals.

use std::collections::HashMap;
use std::time::Duration;

use deerflow_core::ids::RunId;
use deerflow_runtime::stream_bridge::{LogOutline, TerminalKind};
use futures_util::{Stream, StreamExt};
use redis::{Client, FromRedisValue, Script, ScriptInvocation, Value};

use super::connection::{CONNECT_TIMEOUT, Outage, SharedConnection};
use super::options::RedisOptions;
use super::protocol::{
    Append, AppendOutcome, ReadRequest, Reply, StreamSignal, StreamSnapshot, events_of, parsed,
};
use super::stream_head::StreamHead;

/// The `maxmemory-policy` under which a full server refuses events instead of dropping whole
/// streams.
pub const SAFE_POLICY: &str = "noeviction";
/// Margin that the server's key TTL has over the timeout after which viewers are aborted.
const TTL_MARGIN: Duration = Duration::from_secs(60);
const AWAITING_INPUT_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub(super) struct StreamClient {
    client: Client,
    options: RedisOptions,
    /// `true` if there is a durable log in addition to the server.
    durable: bool,
    appends: SharedConnection,
    reads: SharedConnection,
    append: Script,
    forget: Script,
}

impl StreamClient {
    /// Creates a client that connects on first use. Fails if the address is not valid.
    pub(super) fn new(options: RedisOptions, durable: bool) -> Result<Self, redis::ErrorKind> {
        let client = Client::open(options.url.as_str()).map_err(|error| error.kind())?;
        Ok(Self {
            client,
            options,
            durable,
            appends: SharedConnection::new("appends"),
            reads: SharedConnection::new("reads"),
            append: Script::new(include_str!("append.lua")),
            forget: Script::new(include_str!("forget.lua")),
        })
    }

    /// Appends to the stream of a run. The reply states whether the server accepted the append.
    pub(super) async fn append(&self, run_id: &RunId, append: &Append) -> Result<Reply, Outage> {
        let mut call = self.script(&self.append, run_id);
        let flag = |on: bool| if on { "1" } else { "" };
        let end = append.end.map_or("", |kind| match kind {
            TerminalKind::End => "end",
            TerminalKind::Error => "error",
            TerminalKind::Cancel => "cancel",
        });
        call.arg(
            append
                .attempt
                .map(|attempt| attempt.to_string())
                .unwrap_or_default(),
        )
        .arg(append.before.map(|seq| seq.to_string()).unwrap_or_default())
        .arg(flag(append.rebuild))
        .arg(flag(append.awaiting_input))
        .arg(end)
        .arg(millis(
            self.options.idle_stream_ttl.saturating_add(TTL_MARGIN),
        ))
        .arg(millis(self.options.idle_stream_ttl.max(AWAITING_INPUT_TTL)))
        .arg(millis(self.options.retention_after_end))
        .arg(self.options.max_events)
        .arg(self.options.max_bytes)
        .arg(self.channel())
        .arg(run_id.as_str())
        .arg(
            append
                .published_seq
                .map(|seq| seq.to_string())
                .unwrap_or_default(),
        )
        .arg(append.spilled);
        let (max_pending_events, max_pending_bytes) =
            self.options.pending_limit(self.durable).limits();
        call.arg(max_pending_events).arg(max_pending_bytes);
        for event in &append.events {
            call.arg(event.id.attempt)
                .arg(&*event.event)
                .arg(&*event.data.clone().into_bytes());
        }
        let (outcome, fields): (String, HashMap<String, String>) = self.invoke(&call).await?;
        let outcome = match outcome.as_str() {
            "ok" => AppendOutcome::Stored,
            "fenced" => AppendOutcome::Fenced,
            "ended" => AppendOutcome::Ended,
            "short" => AppendOutcome::Behind,
            _ => AppendOutcome::Conflict,
        };
        Ok(Reply {
            outcome,
            head: StreamHead::read(&fields).unwrap_or_default(),
            logged: LogOutline::default(),
        })
    }

    /// Deletes a stream after `delay`, but not before its end.
    pub(super) async fn forget(&self, run_id: &RunId, delay: Duration) -> Result<(), Outage> {
        let mut call = self.script(&self.forget, run_id);
        call.arg(millis(delay));
        let _known: u8 = self.invoke(&call).await?;
        Ok(())
    }

    /// Reads many streams in one round trip.
    pub(super) async fn read_streams(
        &self,
        requests: &[ReadRequest],
    ) -> Result<Vec<StreamSnapshot>, Outage> {
        let mut pipeline = redis::pipe();
        for (run_id, events) in requests {
            let [stream, head] = self.keys(run_id);
            pipeline.cmd("HGETALL").arg(head).cmd("EXISTS").arg(&stream);
            let (from, count) = events.unwrap_or((u64::MAX, 1));
            pipeline
                .cmd("XRANGE")
                .arg(stream)
                .arg(from)
                .arg("+")
                .arg("COUNT")
                .arg(count);
        }
        let values = match self.read(&pipeline).await {
            Err(outage) if outage.stale => self.read(&pipeline).await?,
            answered => answered?,
        };
        let mut values = values.into_iter();
        let mut snapshots = Vec::with_capacity(requests.len());
        while let (Some(fields), Some(exists), Some(events)) =
            (values.next(), values.next(), values.next())
        {
            let head = StreamHead::read(&parsed(fields)?);
            let complete = parsed::<u8>(exists)? == 1
                || head.as_ref().is_some_and(|head| head.first > head.tail);
            snapshots.push(StreamSnapshot {
                head,
                complete,
                events: events_of(events),
            });
        }
        if snapshots.len() == requests.len() {
            Ok(snapshots)
        } else {
            Err(Outage::new("redis returned too few replies to a pipeline"))
        }
    }

    /// Reads one stream.
    pub(super) async fn read_stream(
        &self,
        run_id: &RunId,
        events: Option<(u64, usize)>,
    ) -> Result<StreamSnapshot, Outage> {
        Ok(self
            .read_streams(&[(run_id.clone(), events)])
            .await?
            .pop()
            .unwrap_or_default())
    }

    /// Returns the server's `maxmemory-policy`.
    pub(super) async fn eviction_policy(&self) -> Result<String, Outage> {
        let mut handle = self.reads.acquire(&self.client).await?;
        let answered = redis::cmd("INFO")
            .arg("memory")
            .query_async::<String>(&mut handle.connection)
            .await;
        let info = self.reads.check(&handle, answered).await?;
        let policy = info
            .lines()
            .find_map(|line| line.strip_prefix("maxmemory_policy:"));
        Ok(policy.unwrap_or("unknown").trim().to_owned())
    }

    /// Checks that the server answers.
    pub(super) async fn ping(&self) -> Result<(), Outage> {
        let mut handle = self.reads.acquire(&self.client).await?;
        let answered = redis::cmd("PING")
            .query_async::<String>(&mut handle.connection)
            .await;
        self.reads.check(&handle, answered).await.map(drop)
    }

    /// Subscribes to the signal channel on a separate connection. `None` is a message that only
    /// shows that the connection is alive.
    pub(super) async fn subscribe_signals(
        &self,
    ) -> Result<impl Stream<Item = Option<StreamSignal>> + use<>, Outage> {
        let dial = async {
            let mut pubsub = self.client.get_async_pubsub().await?;
            pubsub.subscribe(self.channel()).await?;
            Ok::<_, Outage>(pubsub)
        };
        let pubsub = tokio::time::timeout(CONNECT_TIMEOUT, dial)
            .await
            .map_err(|_| Outage::new("no answer in time"))??;
        Ok(pubsub.into_on_message().map(|message| {
            message
                .get_payload::<String>()
                .ok()
                .and_then(|text| StreamSignal::parse(&text))
        }))
    }

    /// Publishes an empty message, which shows subscribers that their connection is alive.
    pub(super) async fn send_keepalive(&self) -> Result<(), Outage> {
        let mut handle = self.reads.acquire(&self.client).await?;
        let answered = redis::cmd("PUBLISH")
            .arg(self.channel())
            .arg("")
            .query_async::<i64>(&mut handle.connection)
            .await;
        self.reads.check(&handle, answered).await.map(drop)
    }

    fn script<'a>(&self, script: &'a Script, run_id: &RunId) -> ScriptInvocation<'a> {
        let [stream, head] = self.keys(run_id);
        let mut call = script.prepare_invoke();
        call.key(stream).key(head);
        call
    }

    /// Retries once if the connection was stale: a broken idle connection is only detected on use.
    /// All requests are idempotent.
    async fn invoke<T: FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T, Outage> {
        match self.invoke_once(call).await {
            Err(outage) if outage.stale => self.invoke_once(call).await,
            answered => answered,
        }
    }

    async fn invoke_once<T: FromRedisValue>(
        &self,
        call: &ScriptInvocation<'_>,
    ) -> Result<T, Outage> {
        let mut handle = self.appends.acquire(&self.client).await?;
        let answered = call.invoke_async(&mut handle.connection).await;
        self.appends.check(&handle, answered).await
    }

    async fn read(&self, pipeline: &redis::Pipeline) -> Result<Vec<Value>, Outage> {
        let mut handle = self.reads.acquire(&self.client).await?;
        let answered = pipeline.query_async(&mut handle.connection).await;
        self.reads.check(&handle, answered).await
    }

    /// Both keys hash to one cluster slot: only the part in braces is hashed.
    fn keys(&self, run_id: &RunId) -> [String; 2] {
        let prefix = &self.options.key_prefix;
        [
            format!("{prefix}r:{{{run_id}}}:s"),
            format!("{prefix}r:{{{run_id}}}:m"),
        ]
    }

    fn channel(&self) -> String {
        format!("{}r:bell", self.options.key_prefix)
    }
}

fn millis(period: Duration) -> u64 {
    // Lua numbers are exact up to 2^53.
    u64::try_from(period.as_millis())
        .unwrap_or(u64::MAX)
        .clamp(0, 1 << 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_keys_hash_to_one_slot() {
        let client =
            StreamClient::new(RedisOptions::at("redis://localhost"), false).expect("an address");
        assert_eq!(
            client.keys(&RunId::parse("a-1").expect("valid")),
            ["r:{a-1}:s", "r:{a-1}:m"]
        );
    }
}

//! Everything that is said to the server, over three connections per node: appends, reads, the doorbell.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use harness::ids::RunId;
use harness::runtime::stream_bridge::{EventId, LogOutline, StreamEvent, TerminalKind};
use redis::{Client, FromRedisValue, Script, ScriptInvocation, Value};

use super::lane::{DIAL_LIMIT, Lane, Outage};
use super::options::RedisOptions;
use super::outline::Outline;

/// What is kept while a run waits for a person, or after silence, beyond the time after which viewers are told.
const SLACK: Duration = Duration::from_secs(60);
const WAIT_FOR_A_PERSON: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// One call of the append script.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Append {
    /// Who appends; `None` acts for whoever owns the stream.
    pub(super) attempt: Option<u32>,
    /// The event before the first of these; `None` appends nothing.
    pub(super) before: Option<u64>,
    /// Makes the stream anew: it begins with these events.
    pub(super) remake: bool,
    pub(super) events: Vec<StreamEvent>,
    pub(super) waiting: bool,
    pub(super) end: Option<TerminalKind>,
    /// The newest event that its owner has published, whether or not it is among these.
    pub(super) owed: Option<u64>,
    /// All up to this one is in the durable log: of this much less is kept.
    pub(super) spilled: u64,
}

impl Append {
    /// Fences off lower attempts and asks where the stream stands.
    pub(super) fn claim(attempt: u32) -> Self {
        Self {
            attempt: Some(attempt),
            before: None,
            remake: false,
            events: Vec::new(),
            waiting: false,
            end: None,
            owed: None,
            spilled: 0,
        }
    }

    /// Ends the stream as cancelled, whoever owns it.
    pub(super) fn cancel() -> Self {
        Self {
            attempt: None,
            before: None,
            remake: false,
            events: Vec::new(),
            waiting: false,
            end: Some(TerminalKind::Cancel),
            owed: None,
            spilled: 0,
        }
    }
}

/// What the append script says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All of it is in the log, now or since before.
    Done,
    /// A higher attempt owns the stream.
    Fenced,
    /// The stream has ended.
    Ended,
    /// Events before these are missing in the log.
    Short,
    /// Other events are in the place of these.
    Conflict,
}

/// A verdict, and where the stream stands after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) verdict: Verdict,
    pub(super) outline: Outline,
    /// What the durable log has of it, where that was asked.
    pub(super) logged: LogOutline,
}

/// What a look at a stream shows.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// `None` when there is no such stream.
    pub(super) outline: Option<Outline>,
    /// Whether the events that the outline speaks of are there too.
    pub(super) whole: bool,
    /// The events asked for.
    pub(super) events: Vec<StreamEvent>,
}

/// A look to take: at a run, and at so many of its events from a place on.
pub(super) type Wanted = (RunId, Option<(u64, usize)>);

/// A ring of the doorbell: something came to a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bell {
    pub(super) attempt: u32,
    pub(super) ended: bool,
    pub(super) run_id: RunId,
}

pub(super) struct Link {
    client: Client,
    options: RedisOptions,
    /// There is a durable log beside the server.
    durable: bool,
    appends: Lane,
    reads: Lane,
    append: Script,
    forget: Script,
}

impl Link {
    /// A link that dials when it is first used. `Err` when the address is none.
    pub(super) fn new(options: RedisOptions, durable: bool) -> Result<Self, redis::ErrorKind> {
        let client = Client::open(options.url.as_str()).map_err(|error| error.kind())?;
        Ok(Self {
            client,
            options,
            durable,
            appends: Lane::new("appends"),
            reads: Lane::new("reads"),
            append: Script::new(include_str!("append.lua")),
            forget: Script::new(include_str!("forget.lua")),
        })
    }

    /// Appends to a run's stream, or learns why not.
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
        .arg(flag(append.remake))
        .arg(flag(append.waiting))
        .arg(end)
        .arg(millis(self.options.idle_stream_ttl.saturating_add(SLACK)))
        .arg(millis(self.options.idle_stream_ttl.max(WAIT_FOR_A_PERSON)))
        .arg(millis(self.options.retention_after_end))
        .arg(self.options.max_events)
        .arg(self.options.max_bytes)
        .arg(self.channel())
        .arg(run_id.as_str())
        .arg(append.owed.map(|seq| seq.to_string()).unwrap_or_default())
        .arg(append.spilled);
        let (most_events, most_bytes) = self.options.waiting_room(self.durable).limits();
        call.arg(most_events).arg(most_bytes);
        for event in &append.events {
            call.arg(event.id.attempt)
                .arg(&*event.event)
                .arg(&*event.data.clone().into_bytes());
        }
        let (verdict, fields): (String, HashMap<String, String>) = self.invoke(&call).await?;
        let verdict = match verdict.as_str() {
            "ok" => Verdict::Done,
            "fenced" => Verdict::Fenced,
            "ended" => Verdict::Ended,
            "short" => Verdict::Short,
            _ => Verdict::Conflict,
        };
        Ok(Reply {
            verdict,
            outline: Outline::read(&fields).unwrap_or_default(),
            logged: LogOutline::default(),
        })
    }

    /// Has a stream forgotten after `delay`, but not before its end.
    pub(super) async fn forget(&self, run_id: &RunId, delay: Duration) -> Result<(), Outage> {
        let mut call = self.script(&self.forget, run_id);
        call.arg(millis(delay));
        let _known: u8 = self.invoke(&call).await?;
        Ok(())
    }

    /// Looks at many streams in one round trip.
    pub(super) async fn look(&self, wanted: &[Wanted]) -> Result<Vec<Look>, Outage> {
        let mut pipeline = redis::pipe();
        for (run_id, events) in wanted {
            let [stream, outline] = self.keys(run_id);
            pipeline
                .cmd("HGETALL")
                .arg(outline)
                .cmd("EXISTS")
                .arg(&stream);
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
        let mut looks = Vec::with_capacity(wanted.len());
        while let (Some(fields), Some(exists), Some(events)) =
            (values.next(), values.next(), values.next())
        {
            let outline = Outline::read(&parsed(fields)?);
            let whole = parsed::<u8>(exists)? == 1
                || outline
                    .as_ref()
                    .is_some_and(|outline| outline.first > outline.tail);
            looks.push(Look {
                outline,
                whole,
                events: events_of(events),
            });
        }
        if looks.len() == wanted.len() {
            Ok(looks)
        } else {
            Err(Outage::because("an answer with too few parts"))
        }
    }

    /// Looks at one stream.
    pub(super) async fn look_at(
        &self,
        run_id: &RunId,
        events: Option<(u64, usize)>,
    ) -> Result<Look, Outage> {
        Ok(self
            .look(&[(run_id.clone(), events)])
            .await?
            .pop()
            .unwrap_or_default())
    }

    /// What the server does when its memory is full: its `maxmemory-policy`.
    pub(super) async fn eviction_policy(&self) -> Result<String, Outage> {
        let mut ticket = self.reads.ticket(&self.client).await?;
        let answered = redis::cmd("INFO")
            .arg("memory")
            .query_async::<String>(&mut ticket.connection)
            .await;
        let info = self.reads.judge(&ticket, answered).await?;
        let policy = info
            .lines()
            .find_map(|line| line.strip_prefix("maxmemory_policy:"));
        Ok(policy.unwrap_or("unknown").trim().to_owned())
    }

    /// Whether the server answers.
    pub(super) async fn ping(&self) -> Result<(), Outage> {
        let mut ticket = self.reads.ticket(&self.client).await?;
        let answered = redis::cmd("PING")
            .query_async::<String>(&mut ticket.connection)
            .await;
        self.reads.judge(&ticket, answered).await.map(drop)
    }

    /// Follows the doorbell, on a connection of its own. `None` is a ring that only shows that the line lives.
    pub(super) async fn listen(&self) -> Result<impl Stream<Item = Option<Bell>> + use<>, Outage> {
        let dial = async {
            let mut line = self.client.get_async_pubsub().await?;
            line.subscribe(self.channel()).await?;
            Ok::<_, Outage>(line)
        };
        let line = tokio::time::timeout(DIAL_LIMIT, dial)
            .await
            .map_err(|_| Outage::because("no answer in time"))??;
        Ok(line.into_on_message().map(|message| {
            message
                .get_payload::<String>()
                .ok()
                .and_then(|text| Bell::parse(&text))
        }))
    }

    /// Rings the doorbell for nothing, so that who listens knows that it would hear.
    pub(super) async fn ring(&self) -> Result<(), Outage> {
        let mut ticket = self.reads.ticket(&self.client).await?;
        let answered = redis::cmd("PUBLISH")
            .arg(self.channel())
            .arg("")
            .query_async::<i64>(&mut ticket.connection)
            .await;
        self.reads.judge(&ticket, answered).await.map(drop)
    }

    fn script<'a>(&self, script: &'a Script, run_id: &RunId) -> ScriptInvocation<'a> {
        let [stream, outline] = self.keys(run_id);
        let mut call = script.prepare_invoke();
        call.key(stream).key(outline);
        call
    }

    /// Asks twice if the connection was stale: one that nobody used tells only then. All that is asked may be asked twice.
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
        let mut ticket = self.appends.ticket(&self.client).await?;
        let answered = call.invoke_async(&mut ticket.connection).await;
        self.appends.judge(&ticket, answered).await
    }

    async fn read(&self, pipeline: &redis::Pipeline) -> Result<Vec<Value>, Outage> {
        let mut ticket = self.reads.ticket(&self.client).await?;
        let answered = pipeline.query_async(&mut ticket.connection).await;
        self.reads.judge(&ticket, answered).await
    }

    /// One slot of a cluster holds both: the braces say what is hashed.
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

impl Bell {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (attempt, kind, run_id) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            attempt: attempt.parse().ok()?,
            ended: kind != "-",
            run_id: RunId::parse(run_id).ok()?,
        })
    }
}

fn millis(period: Duration) -> u64 {
    // Lua counts exactly up to 2^53.
    u64::try_from(period.as_millis())
        .unwrap_or(u64::MAX)
        .clamp(0, 1 << 50)
}

fn parsed<T: FromRedisValue>(value: Value) -> Result<T, Outage> {
    T::from_redis_value(value).map_err(|error| Outage::because(error.to_string()))
}

/// The events of an XRANGE; what is none of ours ends them.
fn events_of(value: Value) -> Vec<StreamEvent> {
    let Value::Array(entries) = value else {
        return Vec::new();
    };
    entries.into_iter().map_while(event_of).collect()
}

fn event_of(entry: Value) -> Option<StreamEvent> {
    let (id, [_, name, _, data]) = <(String, [Value; 4])>::from_redis_value(entry).ok()?;
    let (Value::BulkString(name), Value::BulkString(data)) = (name, data) else {
        return None;
    };
    let id: EventId = id.parse().ok()?;
    Some(StreamEvent {
        id,
        event: String::from_utf8(name).ok()?.into(),
        data: Bytes::from(data).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_names_its_run_and_anything_else_is_only_a_sign_of_life() {
        let bell = Bell::parse("2 - run-1").expect("well formed");
        assert_eq!(
            bell,
            Bell {
                attempt: 2,
                ended: false,
                run_id: RunId::parse("run-1").expect("valid")
            }
        );
        assert!(Bell::parse("2 cancel run-1").expect("well formed").ended);
        assert_eq!(
            ["", "x", "1 -", "1 - a/b"].map(Bell::parse),
            [const { None }; 4]
        );
    }

    #[test]
    fn both_keys_of_a_run_hash_to_one_slot() {
        let link = Link::new(RedisOptions::at("redis://localhost"), false).expect("an address");
        assert_eq!(
            link.keys(&RunId::parse("a-1").expect("valid")),
            ["r:{a-1}:s", "r:{a-1}:m"]
        );
    }
}

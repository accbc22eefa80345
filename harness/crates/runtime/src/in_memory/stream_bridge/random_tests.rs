//! Random interleavings of producers and viewers: under any order, every viewer sees the log.

use std::collections::BTreeMap;

use crate::stream_bridge::{EventData, StreamEvent};
use deerflow_core::ids::{IdSource, SeededIds};
use futures_util::FutureExt;

use super::*;

const HEARTBEAT: Duration = Duration::from_secs(60 * 60);

/// Random numbers that repeat exactly from one seed.
struct SeededRng(SeededIds);

impl SeededRng {
    fn below(&self, limit: usize) -> usize {
        // The low half of an id is random except for its two top bits.
        let bits = self.0.random().as_u128() & u128::from(u32::MAX);
        usize::try_from(bits).expect("32 bits") % limit
    }
}

/// Events that one viewer collected over all its connections.
#[derive(Default)]
struct ViewerTranscript {
    events: Vec<StreamEvent>,
    end: Option<TerminalKind>,
}

impl ViewerTranscript {
    /// Truncates the transcript to `seen_count` events and returns the cursor of the last one; the
    /// events after it are replayed.
    fn rewind(&mut self, seen_count: usize) -> ResumeFrom {
        self.events.truncate(seen_count);
        self.events
            .last()
            .map_or(ResumeFrom::Start, |event| ResumeFrom::After(event.id))
    }

    /// Events are missing exactly where the stream has a gap item. After a gap the client loads the
    /// durable `log`.
    fn record(&mut self, item: StreamItem, log: &[StreamEvent]) {
        match item {
            StreamItem::Event(event) => {
                assert_eq!(
                    event.id.seq,
                    self.events.len() as u64 + 1,
                    "a hole or a repetition"
                );
                self.events.push(event);
            }
            StreamItem::End(kind) => self.end = Some(kind),
            StreamItem::Gap(gap) => {
                assert_eq!(
                    gap.requested_event_id,
                    self.events.last().map(|event| event.id.to_string())
                );
                let earliest: EventId = gap.earliest_available_event_id.parse().expect("an id");
                assert!(
                    earliest.seq > self.events.len() as u64 + 1,
                    "the requested event is retained"
                );
                // The bounds are those of the time when the gap was created; the log may have grown
                // since.
                let latest: EventId = gap.latest_available_event_id.parse().expect("an id");
                self.events = log
                    .iter()
                    .take_while(|event| event.id.seq <= latest.seq)
                    .cloned()
                    .collect();
                assert_eq!(self.events.last().map(|event| event.id), Some(latest));
            }
            StreamItem::Heartbeat => {}
            StreamItem::Aborted => panic!("no viewer was disconnected"),
        }
    }
}

struct RandomViewer {
    run: usize,
    transcript: ViewerTranscript,
    connection: Option<Subscription>,
}

impl RandomViewer {
    async fn connect(&mut self, bridge: &InMemoryStreamBridge, run: &RunId, seen_count: usize) {
        let from = self.transcript.rewind(seen_count);
        let view = bridge
            .subscribe(run, from, HEARTBEAT)
            .await
            .expect("an open bridge");
        self.connection = (view.resume != ResumeResult::Unknown).then_some(view);
    }

    fn poll(&mut self) -> Option<StreamItem> {
        self.connection
            .as_mut()
            .and_then(|view| view.items.next().now_or_never().flatten())
    }
}

/// Two runs of up to three attempts, five viewers, a few hundred random steps.
async fn run_interleaving(seed: u64, options: InMemoryOptions) {
    let rng = SeededRng(SeededIds::new(seed));
    let bridge = InMemoryStreamBridge::new(options).expect("valid options");
    let runs = [
        RunId::parse("run-a").expect("valid"),
        RunId::parse("run-b").expect("valid"),
    ];
    let mut logs: [Vec<StreamEvent>; 2] = Default::default();
    let mut attempts = [1_u32; 2];
    let mut viewers: Vec<RandomViewer> = (0..5)
        .map(|n| RandomViewer {
            run: n % 2,
            transcript: ViewerTranscript::default(),
            connection: None,
        })
        .collect();
    for step in 0..300_u32 {
        let run = rng.below(2);
        let viewer = rng.below(viewers.len());
        match rng.below(10) {
            0..4 => {
                if rng.below(40) == 0 && attempts[run] < 3 {
                    attempts[run] += 1;
                }
                for nth in 0..=rng.below(100) {
                    let event = EventName::Borrowed("values");
                    let data = EventData::from(Bytes::from(format!("[{step},{nth}]")));
                    let key = StreamKey {
                        run_id: runs[run].clone(),
                        attempt: attempts[run],
                    };
                    let id = bridge
                        .publish(&key, event.clone(), data.clone())
                        .await
                        .expect("open");
                    logs[run].push(StreamEvent { id, event, data });
                }
            }
            4..8 => {
                for _ in 0..=rng.below(150) {
                    let Some(item) = viewers[viewer].poll() else {
                        break;
                    };
                    let log = &logs[viewers[viewer].run];
                    viewers[viewer].transcript.record(item, log);
                }
            }
            8 => viewers[viewer].connection = None,
            _ => {
                let seen_count = rng.below(viewers[viewer].transcript.events.len() + 1);
                let run = &runs[viewers[viewer].run];
                viewers[viewer].connect(&bridge, run, seen_count).await;
            }
        }
    }
    for (run_id, attempt) in runs.iter().zip(attempts) {
        bridge
            .publish_end(&StreamKey {
                run_id: run_id.clone(),
                attempt,
            })
            .await
            .expect("open");
    }
    for mut viewer in viewers {
        // A gap closes the connection too, and an old one may lead to a second.
        for _ in 0..4 {
            while let Some(item) = viewer.poll() {
                viewer.transcript.record(item, &logs[viewer.run]);
            }
            if viewer.transcript.end.is_none() {
                let seen_count = viewer.transcript.events.len();
                viewer.connect(&bridge, &runs[viewer.run], seen_count).await;
            }
        }
        assert_eq!(viewer.transcript.events, logs[viewer.run], "seed {seed}");
        assert_eq!(
            viewer.transcript.end,
            Some(TerminalKind::End),
            "seed {seed}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn every_viewer_sees_the_log_under_any_interleaving() {
    for seed in 0..200 {
        run_interleaving(seed, InMemoryOptions::default()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn gaps_match_evicted_events_under_small_limits() {
    for seed in 0..200 {
        run_interleaving(
            seed,
            InMemoryOptions {
                max_events: 150,
                ..InMemoryOptions::default()
            },
        )
        .await;
    }
}

/// Reads a run to its end, disconnecting and reconnecting after every `events_per_connection`
/// events.
async fn read_in_connections(
    bridge: Arc<InMemoryStreamBridge>,
    run: RunId,
    events_per_connection: usize,
) -> ViewerTranscript {
    let mut transcript = ViewerTranscript::default();
    while transcript.end.is_none() {
        let from = transcript.rewind(usize::MAX);
        let view = bridge
            .subscribe(&run, from, HEARTBEAT)
            .await
            .expect("an open bridge");
        let mut connection_items = view.items.take(events_per_connection);
        while let Some(item) = connection_items.next().await {
            transcript.record(item, &[]);
        }
    }
    transcript
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn producers_and_viewers_on_many_threads_agree() {
    const RUNS: usize = 4;
    const PRODUCERS: usize = 2;
    const EVENTS: usize = 2_000;
    let bridge = Arc::new(
        InMemoryStreamBridge::new(InMemoryOptions::default()).expect("the defaults are valid"),
    );
    let tasks = Tasks::new();
    let (mut producers, mut viewers) = (Vec::new(), Vec::new());
    for nth in 0..RUNS {
        let run_id = RunId::parse(format!("run-{nth}")).expect("valid");
        let key = StreamKey {
            run_id: run_id.clone(),
            attempt: 1,
        };
        let first = bridge
            .publish(
                &key,
                EventName::Borrowed("metadata"),
                Bytes::from_static(b"{}").into(),
            )
            .await
            .expect("open");
        for events_per_connection in [1, 7, 64, 1_000, usize::MAX] {
            let work = read_in_connections(bridge.clone(), run_id.clone(), events_per_connection);
            viewers.push((nth, tasks.spawn(TaskKind::Finish, "viewer", work)));
        }
        for producer in 0..PRODUCERS {
            let (bridge, key) = (bridge.clone(), key.clone());
            let work = async move {
                let mut published = Vec::new();
                for event in 0..EVENTS {
                    let data = EventData::from(Bytes::from(format!("[{producer},{event}]")));
                    published.push((
                        bridge
                            .publish(&key, EventName::Borrowed("values"), data.clone())
                            .await
                            .expect("open"),
                        data,
                    ));
                }
                published
            };
            producers.push((nth, tasks.spawn(TaskKind::Finish, "producer", work)));
        }
        assert_eq!(first.seq, 1);
    }
    let mut logs = vec![BTreeMap::new(); RUNS];
    for (run, producer) in producers {
        logs[run].extend(producer.await.expect("joined").expect("no panic"));
    }
    for nth in 0..RUNS {
        let key = StreamKey {
            run_id: RunId::parse(format!("run-{nth}")).expect("valid"),
            attempt: 1,
        };
        bridge.publish_end(&key).await.expect("open");
    }
    for (run, viewer) in viewers {
        let transcript = tokio::time::timeout(Duration::from_secs(60), viewer)
            .await
            .expect("in time")
            .expect("joined")
            .expect("no panic");
        assert_eq!(transcript.events.len(), 1 + PRODUCERS * EVENTS);
        assert!(
            transcript.events[1..]
                .iter()
                .all(|event| logs[run].get(&event.id) == Some(&event.data))
        );
    }
}

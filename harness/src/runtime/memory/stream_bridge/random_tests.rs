//! Random interleavings of producers and viewers: whatever the order, every viewer's story is the log.

use std::collections::BTreeMap;

use crate::ids::{IdSource, SeededIds};
use crate::runtime::stream_bridge::{EventData, StreamEvent};
use futures_util::FutureExt;

use super::*;

const HEARTBEAT: Duration = Duration::from_secs(60 * 60);

/// Repeats exactly from one seed.
struct Chance(SeededIds);

impl Chance {
    fn below(&self, limit: usize) -> usize {
        // The low half of an id is random but for its two top bits.
        let bits = self.0.random().as_u128() & u128::from(u32::MAX);
        usize::try_from(bits).expect("32 bits") % limit
    }
}

/// What one viewer has put together over all its connections.
#[derive(Default)]
struct Story {
    events: Vec<StreamEvent>,
    end: Option<TerminalKind>,
}

impl Story {
    /// Comes back with a cursor it has seen, often an older one: what was after it is told again.
    fn rewind(&mut self, keep: usize) -> ResumeFrom {
        self.events.truncate(keep);
        self.events
            .last()
            .map_or(ResumeFrom::Start, |event| ResumeFrom::After(event.id))
    }

    /// Whatever has a hole is a gap, and every gap is a hole. After it comes what a client does: it loads the durable `log`.
    fn take(&mut self, item: StreamItem, log: &[StreamEvent]) {
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
                    "what was asked for is there"
                );
                // The bounds are those of the moment when the gap was met; the log may have grown since.
                let latest: EventId = gap.latest_available_event_id.parse().expect("an id");
                self.events = log
                    .iter()
                    .take_while(|event| event.id.seq <= latest.seq)
                    .cloned()
                    .collect();
                assert_eq!(self.events.last().map(|event| event.id), Some(latest));
            }
            StreamItem::Heartbeat => {}
            StreamItem::Aborted => panic!("nobody was cut"),
        }
    }
}

struct Seat {
    run: usize,
    story: Story,
    connection: Option<Subscription>,
}

impl Seat {
    async fn connect(&mut self, bridge: &MemoryStreamBridge, run: &RunId, keep: usize) {
        let from = self.story.rewind(keep);
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

/// Two runs of up to three attempts, five viewers, a few hundred random moves.
async fn play(seed: u64, options: MemoryOptions) {
    let chance = Chance(SeededIds::new(seed));
    let bridge = MemoryStreamBridge::new(options).expect("valid options");
    let runs = [
        RunId::parse("run-a").expect("valid"),
        RunId::parse("run-b").expect("valid"),
    ];
    let mut logs: [Vec<StreamEvent>; 2] = Default::default();
    let mut attempts = [1_u32; 2];
    let mut seats: Vec<Seat> = (0..5)
        .map(|n| Seat {
            run: n % 2,
            story: Story::default(),
            connection: None,
        })
        .collect();
    for step in 0..300_u32 {
        let run = chance.below(2);
        let seat = chance.below(seats.len());
        match chance.below(10) {
            0..4 => {
                if chance.below(40) == 0 && attempts[run] < 3 {
                    attempts[run] += 1;
                }
                for nth in 0..=chance.below(100) {
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
                for _ in 0..=chance.below(150) {
                    let Some(item) = seats[seat].poll() else {
                        break;
                    };
                    let log = &logs[seats[seat].run];
                    seats[seat].story.take(item, log);
                }
            }
            8 => seats[seat].connection = None,
            _ => {
                let keep = chance.below(seats[seat].story.events.len() + 1);
                let run = &runs[seats[seat].run];
                seats[seat].connect(&bridge, run, keep).await;
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
    for mut seat in seats {
        // A gap closes the connection too, and one met long ago may lead to a second.
        for _ in 0..4 {
            while let Some(item) = seat.poll() {
                seat.story.take(item, &logs[seat.run]);
            }
            if seat.story.end.is_none() {
                let keep = seat.story.events.len();
                seat.connect(&bridge, &runs[seat.run], keep).await;
            }
        }
        assert_eq!(seat.story.events, logs[seat.run], "seed {seed}");
        assert_eq!(seat.story.end, Some(TerminalKind::End), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_viewers_story_is_the_log_whatever_the_interleaving() {
    for seed in 0..200 {
        play(seed, MemoryOptions::default()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_hole_is_a_gap_and_every_gap_a_hole_when_little_is_kept() {
    for seed in 0..200 {
        play(
            seed,
            MemoryOptions {
                max_events: 150,
                ..MemoryOptions::default()
            },
        )
        .await;
    }
}

/// Reads a run to its end, leaving and coming back after every `patience` events.
async fn read_in_visits(bridge: Arc<MemoryStreamBridge>, run: RunId, patience: usize) -> Story {
    let mut story = Story::default();
    while story.end.is_none() {
        let from = story.rewind(usize::MAX);
        let view = bridge
            .subscribe(&run, from, HEARTBEAT)
            .await
            .expect("an open bridge");
        let mut visit = view.items.take(patience);
        while let Some(item) = visit.next().await {
            story.take(item, &[]);
        }
    }
    story
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn producers_and_viewers_on_many_threads_agree() {
    const RUNS: usize = 4;
    const PRODUCERS: usize = 2;
    const EVENTS: usize = 2_000;
    let bridge = Arc::new(
        MemoryStreamBridge::new(MemoryOptions::default()).expect("the defaults are valid"),
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
        for patience in [1, 7, 64, 1_000, usize::MAX] {
            let work = read_in_visits(bridge.clone(), run_id.clone(), patience);
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
        let story = tokio::time::timeout(Duration::from_secs(60), viewer)
            .await
            .expect("in time")
            .expect("joined")
            .expect("no panic");
        assert_eq!(story.events.len(), 1 + PRODUCERS * EVENTS);
        assert!(
            story.events[1..]
                .iter()
                .all(|event| logs[run].get(&event.id) == Some(&event.data))
        );
    }
}

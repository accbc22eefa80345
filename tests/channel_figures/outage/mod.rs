//! Unreachable platforms, connections that stay silent, and live messages that expire.

mod proxy;

use std::time::{Duration, Instant};

use self::proxy::{Network, Proxy};
use crate::arguments::Arguments;
use crate::report;
use crate::rig::{Gateway, PlatformName, Platforms, Setup, end_of};

/// Messages that are written on each platform during an outage.
const DURING: u32 = 5;
/// Time within which a platform must be usable again.
const BACK_LIMIT: Duration = Duration::from_secs(240);
/// Time within which all messages must be answered: longer than the last redelivery of Slack.
const ANSWER_LIMIT: Duration = Duration::from_secs(420);
const POLL: Duration = Duration::from_millis(200);
/// Conversation in which the end of the outage is measured.
const PROBES: usize = 50;
/// Conversation whose live message expires.
const EXPIRING: usize = 60;
/// Interval of the messages that measure it. A platform redelivers those of a time without a
/// connection only after a minute.
const PROBE: Duration = Duration::from_secs(3);
/// Time by which the streams of WeCom are expired.
const EXPIRED: Duration = Duration::from_secs(11 * 60);

/// Message that must have one answer.
#[derive(Debug, Clone, Copy)]
struct Sent {
    platform: PlatformName,
    conversation: usize,
    number: u64,
}

/// Parts of the case.
#[derive(Debug)]
struct Scene {
    platforms: Platforms,
    proxy: Proxy,
    gateway: Gateway,
    names: Vec<PlatformName>,
    last: u64,
    sent: Vec<Sent>,
}

pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let platforms = Platforms::start(false).await?;
    let proxy = Proxy::start().await?;
    let names = arguments.platforms();
    let through_proxy = |name: &str| (name.to_owned(), proxy.url());
    let direct = |name: &str| (name.to_owned(), "none.example".to_owned());
    let setup = Setup {
        channel: "    max_exchanges_per_minute: 0\n".to_owned(),
        sections: "memory: {enabled: false}\n".to_owned(),
        env: vec![
            through_proxy("HTTP_PROXY"),
            through_proxy("http_proxy"),
            direct("NO_PROXY"),
            direct("no_proxy"),
        ],
        ..Setup::default()
    };
    let gateway = Gateway::start(arguments, &platforms, &names, setup).await?;
    let mut scene = Scene {
        platforms,
        proxy,
        gateway,
        names,
        last: 0,
        sent: Vec::new(),
    };
    for network in [Network::Refuses, Network::Silent] {
        scene.outage(network, arguments.outage_time()).await?;
    }
    scene.expired().await
}

impl Scene {
    /// Writes a message; `false` if the platform cannot deliver it, and it has no answer then.
    fn say(&mut self, platform: PlatformName, conversation: usize) -> bool {
        self.ask(platform, conversation, "then say ")
    }

    /// Writes a message whose answer is in progress for 14 seconds.
    fn say_slowly(&mut self, platform: PlatformName, conversation: usize) -> bool {
        // Each piece has a character at least, so a shorter text would end earlier.
        let words = "slow ".repeat(25);
        self.ask(
            platform,
            conversation,
            &format!("[[slow 150x100ms]] then say {words}"),
        )
    }

    fn ask(&mut self, platform: PlatformName, conversation: usize, before: &str) -> bool {
        self.last += 1;
        let number = self.last;
        let text = format!("{before}{}", end_of(number));
        let is_said = self.platforms.say(platform, conversation, &text);
        if is_said {
            self.sent.push(Sent {
                platform,
                conversation,
                number,
            });
        }
        is_said
    }

    fn answers(&self, sent: Sent) -> usize {
        let end = end_of(sent.number);
        let texts = self.platforms.texts(sent.platform, sent.conversation);
        texts.iter().filter(|text| text.contains(&end)).count()
    }

    async fn outage(&mut self, network: Network, time: Duration) -> anyhow::Result<()> {
        self.sent.clear();
        for name in self.names.clone() {
            // An answer is in progress when the outage begins.
            self.say_slowly(name, 1);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        self.proxy.set(network);
        for step in 0..DURING {
            tokio::time::sleep(time / (DURING + 1)).await;
            for name in self.names.clone() {
                self.say(name, 10 + step as usize);
            }
        }
        tokio::time::sleep(time / (DURING + 1)).await;
        self.proxy.set(Network::Works);
        let back = self.back().await?;
        report::line(&format!(
            "{network:?} for {} s: back after {}",
            time.as_secs(),
            back.join(", ")
        ))?;
        self.settled(&format!("{network:?}")).await
    }

    /// Measures until each platform answers one of the messages that are written after the outage.
    async fn back(&mut self) -> anyhow::Result<Vec<String>> {
        let started = Instant::now();
        let mut open: Vec<(PlatformName, Vec<Sent>)> =
            self.names.iter().map(|name| (*name, Vec::new())).collect();
        let (mut back, mut probed) = (Vec::new(), 0);
        while !open.is_empty() {
            let after = started.elapsed();
            if after >= PROBE * probed {
                probed += 1;
                for (name, probes) in &mut open {
                    if self.say(*name, PROBES) {
                        probes.extend(self.sent.last());
                    }
                }
            }
            open.retain(|(name, probes)| {
                let is_back = probes.iter().any(|probe| self.answers(*probe) > 0);
                if is_back {
                    back.push(format!("{} {:.1} s", name.key(), after.as_secs_f64()));
                }
                !is_back
            });
            anyhow::ensure!(
                after < BACK_LIMIT,
                "not back: {open:?}\n{}",
                self.gateway.process.logs()
            );
            tokio::time::sleep(POLL).await;
        }
        Ok(back)
    }

    /// Waits for the answers of all messages, and reports those that are lost or repeated.
    async fn settled(&self, what: &str) -> anyhow::Result<()> {
        let started = Instant::now();
        let missing = || self.sent.iter().filter(|sent| self.answers(**sent) == 0);
        while missing().next().is_some() && started.elapsed() < ANSWER_LIMIT {
            tokio::time::sleep(POLL).await;
        }
        // WeCom neither redelivers nor lists what it delivered to a silent connection.
        let is_excused = |sent: &&Sent| sent.platform == PlatformName::WeCom;
        let excused = missing().filter(is_excused).count();
        let lost: Vec<&Sent> = missing().filter(|sent| !is_excused(sent)).collect();
        let repeated = self.sent.iter().filter(|sent| self.answers(**sent) > 1);
        let repeated: Vec<&Sent> = repeated.collect();
        report::line(&format!(
            "{what}: {} messages, the last answer after {:.0} s; {} lost, {} repeated, {excused} \
             lost by a platform without redelivery",
            self.sent.len(),
            started.elapsed().as_secs_f64(),
            lost.len(),
            repeated.len()
        ))?;
        anyhow::ensure!(
            lost.is_empty() && repeated.is_empty(),
            "lost: {lost:?}, repeated: {repeated:?}"
        );
        Ok(())
    }

    /// Ends live messages in the middle of answers.
    async fn expired(&mut self) -> anyhow::Result<()> {
        self.sent.clear();
        for name in self.names.clone() {
            self.say_slowly(name, EXPIRING);
        }
        tokio::time::sleep(Duration::from_secs(6)).await;
        let complete = self.sent.iter().find(|sent| self.answers(**sent) > 0);
        anyhow::ensure!(complete.is_none(), "complete too early: {complete:?}");
        self.platforms.slack.expire_streams(Duration::ZERO);
        self.platforms.feishu.end_streaming();
        self.platforms.dingtalk.controls().expire_cards();
        self.platforms.wecom.advance(EXPIRED);
        self.settled("expired live messages").await
    }
}

//! Three gateways behind nginx, as `deploy/` has it: clients know one address.

use std::process::Stdio;
use std::time::{Duration, Instant};

use deerflow_tests::gateway::ReservedPort;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::follower::tell;
use crate::rig::{Cluster, Story, Web, text};

/// An nginx of its own; dropping it kills the process.
struct Balancer {
    url: String,
    _child: Child,
    _port: ReservedPort,
    _folder: TempDir,
}

impl Balancer {
    /// Runs the example, with these gateways in place of its own.
    async fn before(cluster: &Cluster) -> Self {
        let mut site = include_str!("../../deploy/nginx.conf").to_owned();
        for (place, node) in cluster.nodes.iter().enumerate() {
            site = site.replace(
                &format!("node-{}:8001", place + 1),
                &node.address().to_string(),
            );
        }
        let port = ReservedPort::new().expect("a free port");
        let address = port.address();
        let site = site.replace("listen 80;", &format!("listen {address};"));
        let folder = tempfile::tempdir().expect("folder");
        let bodies = folder.path().join("bodies");
        let config = format!(
            "daemon off; pid {}; error_log stderr; events {{}} http {{ access_log off; client_body_temp_path {}; {site} }}",
            folder.path().join("pid").display(),
            bodies.display(),
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, config).expect("written");
        // One process, so that killing it ends it.
        let mut command = Command::new("nginx");
        command
            .arg("-c")
            .arg(&file)
            .args(["-g", "master_process off;"])
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let child = command.spawn().expect("nginx");
        let balancer = Self {
            url: format!("http://{address}"),
            _child: child,
            _port: port,
            _folder: folder,
        };
        let begun = Instant::now();
        while cluster
            .web
            .client
            .get(format!("{}/ok", balancer.url))
            .send()
            .await
            .is_err()
        {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "nginx does not answer"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        balancer
    }

    /// The cluster as its clients see it.
    fn web(&self, cluster: &Cluster) -> Web {
        Web {
            urls: [self.url.clone()].into(),
            ..cluster.web.clone()
        }
    }
}

/// The node that works on most runs, as its figures say.
async fn busiest(web: &Web) -> usize {
    let mut busy = Vec::new();
    for node in 0..web.urls.len() {
        let figures = web.get(node, "/metrics").await;
        let line = text(&figures)
            .lines()
            .find_map(|line| line.strip_prefix("deerflow_runs_active "))
            .expect("a figure");
        busy.push((line.parse::<f64>().expect("a number") as u64, node));
    }
    busy.into_iter().max().expect("nodes").1
}

#[tokio::test]
#[ignore = "needs two servers and nginx; tests/cluster/run.sh starts them"]
async fn clients_of_a_balancer_do_not_notice_which_node_dies() {
    let mut cluster = Cluster::of(3).await;
    let balancer = Balancer::before(&cluster).await;
    let web = balancer.web(&cluster);
    let mut telling = JoinSet::new();
    let mut stories = Vec::new();
    for place in 0..9 {
        let story = Story::new(&format!("balanced{place}"), 100, Duration::from_millis(50));
        let thread = web.thread(0).await;
        telling.spawn(tell(web.clone(), 0, thread.clone(), story.clone()));
        stories.push((thread, story));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let busiest = busiest(&cluster.web).await;
    cluster.nodes[busiest].kill9().await.expect("killed");
    let mut moved = 0;
    while let Some(seen) = telling.join_next().await {
        let seen = seen.expect("no panic").expect("acknowledged");
        let story = &stories
            .iter()
            .find(|(thread, _)| *thread == seen.thread)
            .expect("known")
            .1;
        seen.is_whole(story);
        moved += usize::from(seen.attempts.len() > 1);
        assert_eq!(web.talk(0, &seen.thread).await, story.talk());
        web.goes_on(0, &seen.thread).await;
    }
    assert!(moved > 0, "the balancer gave the killed node no run");
    eprintln!("{moved} of {} runs went on elsewhere", stories.len());
}

//! Three gateways behind nginx, as `deploy/` configures it: clients use one address.

use std::process::Stdio;
use std::time::{Duration, Instant};

use deerflow_tests::reserved_port::ReservedPort;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::follower::start_and_follow;
use crate::rig::{Cluster, Gateways, ScriptedReply, text};

/// An nginx process; dropping it kills the process.
struct Balancer {
    url: String,
    _child: Child,
    _port: ReservedPort,
    _folder: TempDir,
}

impl Balancer {
    /// Starts nginx with the example configuration and these gateways as its upstreams.
    async fn start(cluster: &Cluster) -> Self {
        let mut site = include_str!("../../deploy/nginx.conf").to_owned();
        for (index, node) in cluster.nodes.iter().enumerate() {
            site = site.replace(
                &format!("node-{}:8001", index + 1),
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
        // A single process, so that killing it stops the server.
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
        let started = Instant::now();
        while cluster
            .gateways
            .client
            .get(format!("{}/ok", balancer.url))
            .send()
            .await
            .is_err()
        {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "nginx does not answer"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        balancer
    }

    /// Returns the cluster as its clients see it.
    fn gateways(&self, cluster: &Cluster) -> Gateways {
        Gateways {
            urls: [self.url.clone()].into(),
            ..cluster.gateways.clone()
        }
    }
}

/// Returns the node with most active runs, according to its metrics.
async fn busiest(gateways: &Gateways) -> usize {
    let mut busy = Vec::new();
    for node in 0..gateways.urls.len() {
        let figures = gateways.get(node, "/metrics").await;
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
async fn balancer_clients_do_not_notice_a_node_death() {
    let mut cluster = Cluster::of(3).await;
    let balancer = Balancer::start(&cluster).await;
    let gateways = balancer.gateways(&cluster);
    let mut following = JoinSet::new();
    let mut replies = Vec::new();
    for index in 0..9 {
        let reply = ScriptedReply::new(&format!("balanced{index}"), 100, Duration::from_millis(50));
        let thread = gateways.thread(0).await;
        following.spawn(start_and_follow(
            gateways.clone(),
            0,
            thread.clone(),
            reply.clone(),
        ));
        replies.push((thread, reply));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let busiest = busiest(&cluster.gateways).await;
    cluster.nodes[busiest].kill9().await.expect("killed");
    let mut moved = 0;
    while let Some(observed) = following.join_next().await {
        let observed = observed.expect("no panic").expect("acknowledged");
        let reply = &replies
            .iter()
            .find(|(thread, _)| *thread == observed.thread)
            .expect("known")
            .1;
        observed.is_whole(reply);
        moved += usize::from(observed.attempts.len() > 1);
        assert_eq!(
            gateways.visible_messages(0, &observed.thread).await,
            reply.visible_messages()
        );
        gateways.accepts_new_run(0, &observed.thread).await;
    }
    assert!(moved > 0, "the balancer gave the killed node no run");
    eprintln!("{moved} of {} runs resumed on another node", replies.len());
}

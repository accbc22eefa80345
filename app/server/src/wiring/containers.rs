//! Commands in containers: what `sandbox` of a configuration says of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness::config::SandboxConfig;
use harness::config_file::Environment;
use harness::runtime::tasks::Tasks;
use harness::sandbox::command::Mount;
use harness::sandbox::command::container::{
    ContainerCommandSandbox, ContainerMaker, DockerOptions, PoolRules, ProvisionerOptions,
};
use harness::sandbox::{CommandLimits, CommandSandbox};

use super::commands::{CommandPlace, canonical, hidden, mounts, variables};
use crate::config::{ConfigHandle, Settings};

/// What their names begin with.
const USUAL_PREFIX: &str = "deer-flow-sandbox";
/// How many there may be.
const USUAL_REPLICAS: u64 = 3;
/// How many seconds they live that nobody uses.
const USUAL_IDLE: u64 = 600;
/// For how many seconds one is trusted that has answered.
const USUAL_TRUST: f64 = 5.0;
/// How long a new one may take.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// The host of the engine's ports, where that is not this machine.
const ENGINE_HOST: &str = "DEER_FLOW_SANDBOX_HOST";
/// The home of this server as the engine sees it.
const ENGINE_HOME: &str = "DEER_FLOW_HOST_BASE_DIR";

/// Whether the configuration wants containers.
pub(super) fn is_wanted(sandbox: &SandboxConfig) -> bool {
    sandbox.provider == "aio" || sandbox.provider.ends_with(":AioSandboxProvider")
}

/// Has commands run in containers. An engine that is down may come up later, so the tool is there all the same.
pub(super) async fn open(
    handle: &ConfigHandle,
    settings: &Settings,
    tasks: &Tasks,
) -> CommandPlace {
    let config = handle.current();
    let sandbox = &config.sandbox;
    let maker = maker(sandbox, handle.environment(), &settings.home)?;
    match maker.clone().look().await {
        Ok(found) => tracing::info!(maker = found, "commands run in containers"),
        Err(error) => tracing::error!(%error, "commands will fail until containers can be made"),
    }
    let mounts = match &maker {
        ContainerMaker::Docker(options) => {
            let kept: Vec<PathBuf> = hidden(handle, settings)
                .into_iter()
                .chain([canonical(&options.socket)])
                .collect();
            mounts(sandbox, &kept)
        }
        // Its folders are those of other machines.
        ContainerMaker::Provisioner(_) => Vec::new(),
    };
    let opened = ContainerCommandSandbox::new(
        maker,
        rules(sandbox),
        CommandLimits::from(&sandbox.limits),
        mounts,
        tasks.clone(),
    );
    opened
        .map(|opened| Arc::new(opened) as Arc<dyn CommandSandbox>)
        .map_err(|error| error.to_string())
}

/// Who makes containers, or what is wrong with the configuration.
pub(super) fn maker(
    sandbox: &SandboxConfig,
    environment: &Environment,
    home: &Path,
) -> Result<ContainerMaker, String> {
    if sandbox.thread_data_mounts == Some(false) {
        return Err("sandbox.thread_data_mounts: false would hide the conversation's files from its commands; remove it".to_owned());
    }
    if sandbox.extra.text("base_url").is_some() {
        tracing::warn!(
            "sandbox.base_url is not used: each conversation gets a container of its own"
        );
    }
    if let Some(url) = &sandbox.provisioner_url {
        let url = url
            .parse::<reqwest::Url>()
            .map_err(|error| format!("sandbox.provisioner_url {url:?} is no address: {error}"))?;
        let mount = |mount: &harness::config::VolumeMountConfig| Mount {
            host: mount.host_path.clone(),
            inside: mount.container_path.clone(),
            read_only: mount.read_only,
        };
        let mounts = sandbox.mounts.iter().map(mount).collect();
        return Ok(ContainerMaker::Provisioner(ProvisionerOptions {
            url,
            key: sandbox.provisioner_api_key.clone(),
            mounts,
        }));
    }
    Ok(ContainerMaker::Docker(DockerOptions {
        socket: socket(environment)?,
        // Whose programs these are is nobody's to choose but the administrator's.
        image: sandbox
            .image
            .clone()
            .ok_or("sandbox.image is not set: name the image of an all-in-one sandbox")?,
        prefix: sandbox
            .container_prefix
            .clone()
            .unwrap_or_else(|| USUAL_PREFIX.to_owned()),
        first_port: sandbox.port,
        host: environment
            .filled(ENGINE_HOST)
            .unwrap_or("127.0.0.1")
            .to_owned(),
        home: (
            home.to_owned(),
            environment
                .filled(ENGINE_HOME)
                .map_or_else(|| home.to_owned(), PathBuf::from),
        ),
        limits: CommandLimits::from(&sandbox.limits),
        environment: variables(sandbox),
    }))
}

fn rules(sandbox: &SandboxConfig) -> PoolRules {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let idle = Duration::from_secs(sandbox.idle_timeout.unwrap_or(USUAL_IDLE));
    PoolRules {
        replicas: count(sandbox.replicas.unwrap_or(USUAL_REPLICAS)),
        overflow: sandbox.overflow_policy,
        burst: count(sandbox.burst_limit),
        acquire_limit: Duration::from_secs(sandbox.acquire_timeout),
        ready_limit: READY_LIMIT,
        idle_limit: (!idle.is_zero()).then_some(idle),
        trust: Duration::try_from_secs_f64(
            sandbox.health_check_skip_seconds.unwrap_or(USUAL_TRUST),
        )
        .unwrap_or(Duration::MAX),
    }
}

/// Where the engine listens: as its own tools find it.
fn socket(environment: &Environment) -> Result<PathBuf, String> {
    for variable in ["DOCKER_HOST", "CONTAINER_HOST"] {
        if let Some(address) = environment.filled(variable) {
            let socket = address.strip_prefix("unix://").map(PathBuf::from);
            return socket.ok_or_else(|| {
                format!(
                    "{variable} is {address:?}: containers need an engine at a socket, unix:///path"
                )
            });
        }
    }
    let docker = PathBuf::from("/var/run/docker.sock");
    let of_user = environment
        .filled("XDG_RUNTIME_DIR")
        .map(|folder| Path::new(folder).join("podman/podman.sock"));
    let known = [
        Some(docker.clone()),
        of_user,
        Some(PathBuf::from("/run/podman/podman.sock")),
    ];
    Ok(known
        .into_iter()
        .flatten()
        .find(|socket| socket.exists())
        .unwrap_or(docker))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn made(value: Value, variables: &[(&str, &str)]) -> Result<ContainerMaker, String> {
        let sandbox: SandboxConfig = serde_json::from_value(value).unwrap();
        maker(
            &sandbox,
            &Environment::of("/srv", variables.iter().copied()),
            Path::new("/srv/home"),
        )
    }

    #[test]
    fn an_older_configuration_means_an_engine_or_a_provisioner() {
        let class = "deerflow.community.aio_sandbox:AioSandboxProvider";
        let config = json!({"use": class, "image": "a/b:1", "port": 9000, "container_prefix": "p"});
        assert!(is_wanted(&serde_json::from_value(config.clone()).unwrap()));
        let Ok(ContainerMaker::Docker(options)) = made(
            config,
            &[
                ("DOCKER_HOST", "unix:///run/x.sock"),
                (ENGINE_HOME, "/host"),
            ],
        ) else {
            panic!("an engine");
        };
        assert_eq!(
            (
                options.image.as_str(),
                options.first_port,
                options.prefix.as_str()
            ),
            ("a/b:1", Some(9000), "p")
        );
        assert_eq!(
            (options.socket, options.home.1),
            (PathBuf::from("/run/x.sock"), PathBuf::from("/host"))
        );
        let config = json!({"use": class, "provisioner_url": "http://provisioner:8002", "provisioner_api_key": "k"});
        assert!(
            matches!(made(config, &[]), Ok(ContainerMaker::Provisioner(options)) if options.key.is_some())
        );
        assert!(!is_wanted(&SandboxConfig::default()));
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        assert!(
            made(
                json!({"image": "a/b:1"}),
                &[("DOCKER_HOST", "tcp://1.2.3.4:2375")]
            )
            .unwrap_err()
            .contains("DOCKER_HOST")
        );
        assert!(
            made(json!({}), &[("DOCKER_HOST", "unix:///run/x.sock")])
                .unwrap_err()
                .contains("sandbox.image")
        );
        assert!(
            made(json!({"provisioner_url": "::"}), &[])
                .unwrap_err()
                .contains("provisioner_url")
        );
        assert!(
            made(json!({"thread_data_mounts": false}), &[])
                .unwrap_err()
                .contains("thread_data_mounts")
        );
    }
}

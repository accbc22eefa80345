//! Backend and pool of containers in which commands run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::config::SandboxConfig;
use harness::config_file::Environment;
use harness::sandbox::CommandLimits;
use harness::sandbox::command::Mount;
use harness::sandbox::command::container::{
    ContainerBackend, DockerOptions, PoolRules, ProvisionerOptions,
};

use super::variables::variables;

/// Prefix of container names.
const DEFAULT_PREFIX: &str = "deer-flow-sandbox";
/// Maximum number of containers.
const DEFAULT_REPLICAS: u64 = 3;
/// Seconds after which an idle container is removed.
const DEFAULT_IDLE_SECONDS: u64 = 600;
/// Seconds for which a container is not checked again after a response.
const DEFAULT_TRUST_SECONDS: f64 = 5.0;
/// Timeout for the start of a container.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Variable with the host of published ports, if the engine runs on another machine.
const ENGINE_HOST: &str = "DEER_FLOW_SANDBOX_HOST";
/// Variable with the path of this server's home as seen by the engine.
const ENGINE_HOME: &str = "DEER_FLOW_HOST_BASE_DIR";

/// Reports whether commands run in containers.
pub(crate) fn is_configured(sandbox: &SandboxConfig) -> bool {
    sandbox.provider == "aio" || sandbox.provider.ends_with(":AioSandboxProvider")
}

/// Returns the container backend, or what is wrong with the configuration.
pub(crate) fn backend(
    sandbox: &SandboxConfig,
    environment: &Environment,
    home: &Path,
) -> Result<ContainerBackend, String> {
    if sandbox.thread_data_mounts == Some(false) {
        return Err("sandbox.thread_data_mounts: false would hide the thread's files from its commands; remove it".to_owned());
    }
    if sandbox.extra.text("base_url").is_some() {
        tracing::warn!("sandbox.base_url is ignored: each thread gets its own container");
    }
    if let Some(url) = &sandbox.provisioner_url {
        let url = url
            .parse::<reqwest::Url>()
            .map_err(|error| format!("sandbox.provisioner_url {url:?} is not a URL: {error}"))?;
        let mount = |mount: &harness::config::VolumeMountConfig| Mount {
            host: mount.host_path.clone(),
            inside: mount.container_path.clone(),
            read_only: mount.read_only,
        };
        let mounts = sandbox.mounts.iter().map(mount).collect();
        return Ok(ContainerBackend::Provisioner(ProvisionerOptions {
            url,
            key: sandbox.provisioner_api_key.clone(),
            mounts,
        }));
    }
    Ok(ContainerBackend::Docker(DockerOptions {
        socket: socket(environment)?,
        // Only the administrator may choose the image, because its programs are executed.
        image: sandbox
            .image
            .clone()
            .ok_or("sandbox.image is not set: name the image of an all-in-one sandbox")?,
        prefix: sandbox
            .container_prefix
            .clone()
            .unwrap_or_else(|| DEFAULT_PREFIX.to_owned()),
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

/// Returns the rules of the container pool.
pub(crate) fn pool_rules(sandbox: &SandboxConfig) -> PoolRules {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let idle = Duration::from_secs(sandbox.idle_timeout.unwrap_or(DEFAULT_IDLE_SECONDS));
    PoolRules {
        replicas: count(sandbox.replicas.unwrap_or(DEFAULT_REPLICAS)),
        overflow: sandbox.overflow_policy,
        burst: count(sandbox.burst_limit),
        acquire_limit: Duration::from_secs(sandbox.acquire_timeout),
        ready_limit: READY_TIMEOUT,
        idle_limit: (!idle.is_zero()).then_some(idle),
        trust: Duration::try_from_secs_f64(
            sandbox
                .health_check_skip_seconds
                .unwrap_or(DEFAULT_TRUST_SECONDS),
        )
        .unwrap_or(Duration::MAX),
    }
}

/// Finds the socket of the engine like the engine's own tools do.
fn socket(environment: &Environment) -> Result<PathBuf, String> {
    for variable in ["DOCKER_HOST", "CONTAINER_HOST"] {
        if let Some(address) = environment.filled(variable) {
            let socket = address.strip_prefix("unix://").map(PathBuf::from);
            return socket.ok_or_else(|| {
                format!(
                    "{variable} is {address:?}: containers need an engine with a unix socket, unix:///path"
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

    fn made(value: Value, variables: &[(&str, &str)]) -> Result<ContainerBackend, String> {
        let sandbox: SandboxConfig = serde_json::from_value(value).unwrap();
        backend(
            &sandbox,
            &Environment::of("/srv", variables.iter().copied()),
            Path::new("/srv/home"),
        )
    }

    #[test]
    fn older_configuration_selects_engine_or_provisioner() {
        let class = "deerflow.community.aio_sandbox:AioSandboxProvider";
        let config = json!({"use": class, "image": "a/b:1", "port": 9000, "container_prefix": "p"});
        assert!(is_configured(
            &serde_json::from_value(config.clone()).unwrap()
        ));
        let Ok(ContainerBackend::Docker(options)) = made(
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
            matches!(made(config, &[]), Ok(ContainerBackend::Provisioner(options)) if options.key.is_some())
        );
        assert!(!is_configured(&SandboxConfig::default()));
    }

    #[test]
    fn unsupported_settings_are_reported() {
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

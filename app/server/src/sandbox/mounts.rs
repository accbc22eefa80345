//! Selection of the configured mounts that expose no private file of this server.

use std::path::{Path, PathBuf};

use harness::config::SandboxConfig;
use harness::config_file::locate_extensions;
use harness::sandbox::Mount;

use crate::config::{ConfigHandle, Settings};

/// Paths inside the sandbox that mounts may not replace, cover or contain.
const RESERVED: &[&str] = &[
    "/mnt/user-data",
    "/mnt/skills",
    "/mnt/acp-workspace",
    "/mnt/.sandbox",
    "/proc",
    "/dev",
    "/usr",
    "/etc",
    "/tmp",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
];

/// Returns the private paths of this server.
pub(crate) fn private_paths(handle: &ConfigHandle, settings: &Settings) -> Vec<PathBuf> {
    let root = handle.environment().project_root();
    let dotenv = [Some(root.as_path()), root.parent()]
        .into_iter()
        .flatten()
        .map(|folder| folder.join(".env"));
    // The extensions file contains credentials of MCP servers.
    let extensions = locate_extensions(handle.environment()).ok();
    let secret = handle
        .path()
        .map(PathBuf::from)
        .into_iter()
        .chain(extensions)
        .chain(dotenv);
    let data = [
        settings.home.clone(),
        settings.sqlite_dir(&handle.current().database),
    ];
    data.into_iter()
        .chain(secret)
        .map(|path| canonical(&path))
        .collect()
}

/// Returns the configured folders that can be mounted; others are logged.
pub(crate) fn mounts(sandbox: &SandboxConfig, private_paths: &[PathBuf]) -> Vec<Mount> {
    let (good, bad): (Vec<_>, Vec<_>) = sandbox.mounts.iter().partition(|mount| {
        let inside = Path::new(&mount.container_path);
        let climbs = inside.components().any(|part| {
            !matches!(
                part,
                std::path::Component::Normal(_) | std::path::Component::RootDir
            )
        });
        let is_free = inside.is_absolute() && inside.parent().is_some() && !climbs;
        is_free
            && !RESERVED.iter().any(|reserved| {
                inside.starts_with(reserved) || Path::new(reserved).starts_with(inside)
            })
            && mount.host_path.is_absolute()
            && mount.host_path.exists()
            && !private_paths
                .iter()
                .any(|secret| overlap(secret, &canonical(&mount.host_path)))
    });
    for mount in bad {
        tracing::error!(host = %mount.host_path.display(), inside = %mount.container_path, "mount is ignored: a path is missing, relative or reserved, or exposes private files of this server");
    }
    good.into_iter()
        .map(|mount| Mount {
            host: mount.host_path.clone(),
            inside: mount.container_path.clone(),
            read_only: mount.read_only,
        })
        .collect()
}

/// Returns the folders that are mounted in addition to those of the thread.
pub(crate) fn mounted(handle: &ConfigHandle, settings: &Settings) -> Vec<Mount> {
    mounts(&handle.current().sandbox, &private_paths(handle, settings))
}

fn overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// Resolves links in the existing part of a path.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    let existing = path
        .ancestors()
        .find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    existing.map_or_else(
        || path.to_owned(),
        |(ancestor, real)| {
            path.strip_prefix(ancestor)
                .map_or(real.clone(), |rest| real.join(rest))
        },
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sandbox(value: Value) -> SandboxConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn mounts_expose_no_private_path_and_cover_no_agent_folder() {
        let host = tempfile::tempdir().unwrap();
        let sandbox_impl = |name: &str| {
            let path = host.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let (home, shared, link) = (
            sandbox_impl("srv/deer"),
            sandbox_impl("shared"),
            host.path().join("link"),
        );
        std::os::unix::fs::symlink(&home, &link).unwrap();
        let mount =
            |host: &Path, inside: &str| json!({"host_path": host, "container_path": inside});
        let config = sandbox(json!({"mounts": [
            mount(&shared, "/srv/shared"), mount(&home, "/srv/home"), mount(host.path(), "/srv/all"), mount(&link, "/srv/link"),
            mount(&shared, "/mnt"), mount(&shared, "/lib64/x"),
        ]}));
        let mounted: Vec<String> = mounts(&config, &[canonical(&home)])
            .into_iter()
            .map(|mount| mount.inside)
            .collect();
        assert_eq!(mounted, ["/srv/shared"]);
    }
}

//! Classes of paths with their own rules of access. Paths are compared as sent: the router decodes
//! no separators, so an encoded path reaches no handler under another class.

/// Access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathClass {
    /// Health checks that must answer while stores are down: nothing is looked up for them.
    Probe,
    /// Facts about the server that everybody may read.
    Public,
    /// Sign-in: everybody may use it, and it decides by its own rules.
    SignIn,
    /// Everything else, for signed-in people and programs.
    Protected,
}

const PROBES: [&str; 2] = ["/health", "/ready"];
const PUBLIC: [&str; 3] = ["", "/ok", "/info"];
/// Sign-in routes under `/v1/auth/`.
const SIGN_IN: [&str; 6] = [
    "login/local",
    "register",
    "initialize",
    "logout",
    "setup-status",
    "providers",
];
/// Prefixes of the routes of identity providers under `/v1/auth/`.
const PROVIDERS: [&str; 2] = ["oauth/", "callback/"];

/// Returns the class of a path. A final slash does not count.
pub(crate) fn class_of(path: &str) -> PathClass {
    let path = path.strip_suffix('/').unwrap_or(path);
    if PROBES.contains(&path) {
        return PathClass::Probe;
    }
    if PUBLIC.contains(&path) {
        return PathClass::Public;
    }
    match sign_in_route(path) {
        Some(route)
            if SIGN_IN.contains(&route)
                || PROVIDERS.iter().any(|prefix| is_one_name(route, prefix)) =>
        {
            PathClass::SignIn
        }
        _ => PathClass::Protected,
    }
}

/// `true` for all routes about accounts, protected ones included.
pub(crate) fn is_sign_in_group(path: &str) -> bool {
    let admin = ["/api/v1/admin/", "/api/langgraph/v1/admin/"];
    sign_in_route(path).is_some() || admin.iter().any(|prefix| path.starts_with(prefix))
}

/// `true` for files of threads that browsers show.
pub(crate) fn is_artifact(path: &str) -> bool {
    ["/api/threads/", "/api/langgraph/threads/"]
        .iter()
        .filter_map(|prefix| path.strip_prefix(prefix)?.split_once('/'))
        .any(|(_, rest)| rest.starts_with("artifacts/"))
}

fn sign_in_route(path: &str) -> Option<&str> {
    ["/api/v1/auth/", "/api/langgraph/v1/auth/"]
        .iter()
        .find_map(|prefix| path.strip_prefix(prefix))
}

/// `true` if the route is the prefix with one name.
fn is_one_name(route: &str, prefix: &str) -> bool {
    route
        .strip_prefix(prefix)
        .is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_paths_are_public() {
        for (path, class) in [
            ("/health", PathClass::Probe),
            ("/ready/", PathClass::Probe),
            ("/", PathClass::Public),
            ("/ok", PathClass::Public),
            ("/info", PathClass::Public),
            ("/api/v1/auth/login/local", PathClass::SignIn),
            ("/api/v1/auth/setup-status/", PathClass::SignIn),
            ("/api/langgraph/v1/auth/register", PathClass::SignIn),
            ("/api/v1/auth/oauth/keycloak", PathClass::SignIn),
            ("/api/v1/auth/callback/keycloak", PathClass::SignIn),
        ] {
            assert_eq!(class_of(path), class, "{path}");
        }
        for path in [
            "/api/v1/auth/me",
            "/api/v1/auth/sessions",
            "/api/v1/auth/login",
            "/api/v1/auth/oauth/",
            "/api/v1/auth/oauth/a/b",
            "/api/v1/auth/oauth//threads",
            "/api/v1/auth//register",
            "/api//v1/auth/register",
            "//api/v1/auth/register",
            "/api/v1/auth/register//",
            "/api/v1/auth/%72egister",
            "/api/v1/auth/register%2f",
            "/api/v1/auth/register/../me",
            "/api/v1/auth/Register",
            "/v1/auth/register",
            "//health",
            "/health/x",
            "/ok/x",
            "/api/ok",
            "/api/threads",
            "/metrics",
            "/docs",
        ] {
            assert_eq!(class_of(path), PathClass::Protected, "{path}");
        }
    }

    #[test]
    fn artifacts_are_files_of_threads() {
        assert!(is_artifact("/api/threads/x/artifacts/mnt/user-data/a.pdf"));
        assert!(is_artifact("/api/langgraph/threads/x/artifacts/a"));
        assert!(!is_artifact("/api/threads/x/uploads/artifacts/a"));
        assert!(!is_artifact("/api/threads/artifacts/a"));
        assert!(!is_artifact("/threads/x/artifacts/a"));
    }
}

//! Converts the configured MCP servers to the types of ACP.

use agent_client_protocol::v1::schema::{
    EnvVariable, HttpHeader, McpCapabilities, McpServer, McpServerHttp, McpServerSse,
    McpServerStdio,
};
use reqwest::header::HeaderMap;

use crate::mcp::{HttpKind, Link, ServerSpec};

/// Returns the servers that an agent with these capabilities can use. Omits servers with OAuth,
/// because their access tokens may expire before the task ends.
pub(super) fn usable_servers(servers: &[ServerSpec], can: &McpCapabilities) -> Vec<McpServer> {
    servers
        .iter()
        .filter_map(|server| one(server, can))
        .collect()
}

fn one(server: &ServerSpec, can: &McpCapabilities) -> Option<McpServer> {
    let name = &server.name;
    match &server.link {
        Link::Stdio {
            command, args, env, ..
        } => {
            let env = env
                .iter()
                .map(|(name, value)| EnvVariable::new(name, value))
                .collect();
            Some(McpServer::Stdio(
                McpServerStdio::new(name, command)
                    .args(args.clone())
                    .env(env),
            ))
        }
        Link::Http { oauth: Some(_), .. } => None,
        Link::Http {
            url,
            headers,
            kind: HttpKind::Streamable,
            ..
        } => can.http.then(|| {
            McpServer::Http(McpServerHttp::new(name, url.as_str()).headers(headers_of(headers)))
        }),
        Link::Http {
            url,
            headers,
            kind: HttpKind::Sse,
            ..
        } => can.sse.then(|| {
            McpServer::Sse(McpServerSse::new(name, url.as_str()).headers(headers_of(headers)))
        }),
    }
}

fn headers_of(headers: &HeaderMap) -> Vec<HttpHeader> {
    headers
        .iter()
        .filter_map(|(name, value)| Some(HttpHeader::new(name.as_str(), value.to_str().ok()?)))
        .collect()
}

/// Returns the secret values of these servers: environment variables and headers. They are redacted
/// from all texts.
pub(super) fn secrets(servers: &[ServerSpec]) -> impl Iterator<Item = &str> {
    servers
        .iter()
        .flat_map(|server| -> Box<dyn Iterator<Item = &str>> {
            match &server.link {
                Link::Stdio { env, .. } => Box::new(env.iter().map(|(_, value)| value)),
                Link::Http { headers, .. } => {
                    Box::new(headers.values().filter_map(|value| value.to_str().ok()))
                }
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn servers() -> Vec<ServerSpec> {
        let entries = [
            (
                "files",
                json!({"command": "npx", "args": ["-y", "x"], "env": {"KEY": "canary-key"}}),
            ),
            (
                "issues",
                json!({"type": "http", "url": "https://a.example/mcp", "headers": {"Authorization": "Bearer canary"}}),
            ),
            (
                "older",
                json!({"type": "sse", "url": "https://b.example/sse"}),
            ),
            (
                "signed",
                json!({"type": "http", "url": "https://c.example/mcp", "oauth": {"token_url": "https://c.example/t", "client_id": "i", "client_secret": "s"}}),
            ),
        ];
        entries
            .into_iter()
            .map(|(name, entry)| ServerSpec::read(name, &entry).unwrap().unwrap())
            .collect()
    }

    fn usable_names(can: &McpCapabilities) -> Vec<Value> {
        usable_servers(&servers(), can)
            .iter()
            .map(|server| serde_json::to_value(server).unwrap())
            .collect()
    }

    #[test]
    fn agent_gets_only_servers_it_supports() {
        let files = json!({"name": "files", "command": "npx", "args": ["-y", "x"], "env": [{"name": "KEY", "value": "canary-key"}]});
        assert_eq!(usable_names(&McpCapabilities::default()), [files]);
        let all = usable_names(&McpCapabilities::default().http(true).sse(true));
        let headers = json!([{"name": "authorization", "value": "Bearer canary"}]);
        assert_eq!(
            all[1],
            json!({"type": "http", "name": "issues", "url": "https://a.example/mcp", "headers": headers})
        );
        assert_eq!((all.len(), &all[2]["type"]), (3, &json!("sse")));
        assert_eq!(
            secrets(&servers()).collect::<Vec<_>>(),
            ["canary-key", "Bearer canary"]
        );
    }
}

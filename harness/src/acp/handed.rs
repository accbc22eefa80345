//! The MCP servers that an agent is handed, in the words of its protocol.

use agent_client_protocol::v1::schema::{
    EnvVariable, HttpHeader, McpCapabilities, McpServer, McpServerHttp, McpServerSse,
    McpServerStdio,
};
use reqwest::header::HeaderMap;

use crate::mcp::{HttpKind, Link, ServerSpec};

/// The servers that an agent with these capabilities can use. One that needs tokens cannot be handed over: they end before the task does.
pub(super) fn handed(servers: &[ServerSpec], can: &McpCapabilities) -> Vec<McpServer> {
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
            McpServer::Http(McpServerHttp::new(name, url.as_str()).headers(shown(headers)))
        }),
        Link::Http {
            url,
            headers,
            kind: HttpKind::Sse,
            ..
        } => can
            .sse
            .then(|| McpServer::Sse(McpServerSse::new(name, url.as_str()).headers(shown(headers)))),
    }
}

fn shown(headers: &HeaderMap) -> Vec<HttpHeader> {
    headers
        .iter()
        .filter_map(|(name, value)| Some(HttpHeader::new(name.as_str(), value.to_str().ok()?)))
        .collect()
}

/// What of these servers nobody is shown.
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

    fn named(can: &McpCapabilities) -> Vec<Value> {
        handed(&servers(), can)
            .iter()
            .map(|server| serde_json::to_value(server).unwrap())
            .collect()
    }

    #[test]
    fn an_agent_is_handed_what_it_can_use() {
        let files = json!({"name": "files", "command": "npx", "args": ["-y", "x"], "env": [{"name": "KEY", "value": "canary-key"}]});
        assert_eq!(named(&McpCapabilities::default()), [files]);
        let all = named(&McpCapabilities::default().http(true).sse(true));
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

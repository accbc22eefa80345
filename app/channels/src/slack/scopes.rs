//! Scopes of the bot's token.

/// Scopes that the bot needs, with their uses.
const NEEDED: &[(&str, &str)] = &[
    ("chat:write", "write messages"),
    ("app_mentions:read", "receive mentions"),
    ("im:history", "receive direct messages"),
    ("channels:history", "fetch missed messages of channels"),
    ("reactions:write", "show receipts"),
    ("files:read", "receive files"),
    ("files:write", "send files"),
];

/// Returns a warning for each scope that the header of an answer does not list.
pub(super) fn missing(header: Option<&str>) -> Vec<String> {
    let Some(header) = header else {
        return Vec::new();
    };
    let granted: Vec<&str> = header.split(',').map(str::trim).collect();
    NEEDED
        .iter()
        .filter(|(scope, _)| !granted.contains(scope))
        .map(|(scope, uses)| {
            format!(
                "the bot token lacks the scope {scope}, so the bot cannot {uses}: add it under \
                 OAuth & Permissions and install the app again"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_scopes_are_named() {
        let all: Vec<&str> = NEEDED.iter().map(|(scope, _)| *scope).collect();
        assert!(missing(Some(&all.join(","))).is_empty());
        assert!(missing(None).is_empty());
        let warnings = missing(Some("chat:write, im:history"));
        assert_eq!(warnings.len(), NEEDED.len() - 2);
        assert!(warnings[0].contains("app_mentions:read"));
    }
}

//! Numbers of answered requests, read from the metrics of this process.

use serde_json::{Value, json};

/// Metric that counts answered requests, with its labels `method`, `route` and `status`.
pub(super) const REQUESTS_TOTAL: &str = "deerflow_http_requests_total";

/// Returns the numbers of answered requests by method, route and status from metrics in Prometheus'
/// text format.
pub(crate) fn request_counts(metrics: &str) -> Vec<Value> {
    metrics.lines().filter_map(request_count).collect()
}

fn request_count(line: &str) -> Option<Value> {
    let series = line.strip_prefix(REQUESTS_TOTAL)?.strip_prefix('{')?;
    let (labels, count) = series.rsplit_once("} ")?;
    let label = |name: &str| {
        let (_, rest) = labels.split_once(&format!("{name}=\""))?;
        Some(rest.split_once('"')?.0)
    };
    Some(json!({
        "method": label("method")?,
        "path": label("route")?,
        "status": label("status")?.parse::<u16>().ok()?,
        "count": count.trim().parse::<u64>().ok()?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_by_method_route_and_status() {
        let metrics = "# TYPE deerflow_http_requests_total counter\n\
            deerflow_http_requests_total{method=\"GET\",route=\"/threads/{thread_id}\",status=\"404\"} 3\n\
            deerflow_http_requests_total 5\n\
            deerflow_runs_active 1\n";
        let expected =
            json!({ "method": "GET", "path": "/threads/{thread_id}", "status": 404, "count": 3 });
        assert_eq!(request_counts(metrics), [expected]);
    }
}

//! Classifies errors of providers: by code and message, or by status if no code or phrase matches.

use super::ModelErrorKind;

const QUOTA: &[&str] = &[
    "quota",
    "billing",
    "credit",
    "payment",
    "余额不足",
    "额度不足",
    "额度已用",
    "超出配额",
    "超出额度",
    "配额",
    "欠费",
    "账户已停用",
];
const AUTH: &[&str] = &[
    "authentication",
    "unauthorized",
    "invalid api key",
    "invalid_api_key",
    "api key not valid",
    "incorrect api key",
    "permission",
    "forbidden",
    "access denied",
    "access_denied",
    "无权限",
    "没有权限",
    "权限不足",
    "未授权",
    "鉴权失败",
    "认证失败",
];
const BURST: &[&str] = &[
    "limit_burst_rate",
    "rate increased too quickly",
    "burst rate",
    "burst_rate",
    "增长过快",
    "突发流量",
    "突增",
];
/// Codes of ordinary rate limits. Their messages often mention billing.
const RATE_LIMIT_CODES: &[&str] = &[
    "rate_limit_exceeded",
    "rate_limit_error",
    "tokens",
    "requests",
];
const TRANSIENT: &[&str] = &[
    "server_error",
    "server error",
    "internal error",
    "internal_error",
    "timed out",
    "timeout",
    "connection",
    "服务器内部错误",
    "超时",
];
const BUSY: &[&str] = &[
    "server busy",
    "server is busy",
    "temporarily unavailable",
    "try again later",
    "please retry",
    "please try again",
    "overloaded",
    "high demand",
    "rate limit",
    "rate_limit",
    "负载较高",
    "负载过高",
    "服务繁忙",
    "系统繁忙",
    "请稍后",
    "稍后重试",
    "限流",
];

/// Error of a provider, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ErrorReport<'a> {
    /// HTTP status.
    pub(crate) status: Option<u16>,
    /// Error code or type.
    pub(crate) code: &'a str,
    /// Error message.
    pub(crate) message: &'a str,
}

/// Returns the class of an error. The text takes precedence over the status: many gateways answer
/// 429 or 400 when the quota is used up.
pub(crate) fn classify(report: ErrorReport<'_>) -> ModelErrorKind {
    let text = format!("{} {}", report.code, report.message).to_lowercase();
    let matches_any = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let rate_limited =
        matches!(report.status, None | Some(429)) && RATE_LIMIT_CODES.contains(&report.code);
    if rate_limited && !matches_any(BURST) {
        return ModelErrorKind::Transient;
    }
    if matches_any(QUOTA) && !rate_limited {
        return ModelErrorKind::Quota;
    }
    if matches_any(AUTH) {
        return ModelErrorKind::Auth;
    }
    if matches_any(BURST) {
        return ModelErrorKind::Burst;
    }
    match report.status.and_then(class_of_status) {
        Some(kind) => kind,
        None if matches_any(BUSY) => ModelErrorKind::Busy,
        None if report.status.is_none() && matches_any(TRANSIENT) => ModelErrorKind::Transient,
        None => ModelErrorKind::BadRequest,
    }
}

/// Returns the class of a status. Returns `None` for 400 and similar statuses, because their text
/// may state that the provider is busy.
fn class_of_status(status: u16) -> Option<ModelErrorKind> {
    match status {
        401 | 403 => Some(ModelErrorKind::Auth),
        402 => Some(ModelErrorKind::Quota),
        300..=399 | 404 | 405 => Some(ModelErrorKind::Config),
        408 | 409 | 425 | 429 => Some(ModelErrorKind::Transient),
        529 => Some(ModelErrorKind::Busy),
        500 | 502..=504 | 506..=599 => Some(ModelErrorKind::Transient),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::ModelErrorKind::*;
    use super::*;

    #[test]
    fn classify_prefers_text_then_status_then_busy_text() {
        let table = [
            (
                Some(429),
                "insufficient_quota",
                "You exceeded your current quota",
                Quota,
            ),
            (Some(400), "", "账户余额不足", Quota),
            (Some(402), "", "", Quota),
            (Some(400), "", "Invalid API key given", Auth),
            (Some(401), "", "", Auth),
            (Some(403), "", "没有权限访问该模型", Auth),
            (Some(429), "limit_burst_rate", "slow down", Burst),
            (Some(429), "", "Request rate increased too quickly", Burst),
            (
                Some(429),
                "rate_limit_exceeded",
                "Rate limit reached",
                Transient,
            ),
            (
                Some(429),
                "rate_limit_exceeded",
                "Add a payment method on the billing page to raise it",
                Transient,
            ),
            (
                Some(429),
                "tokens",
                "Limit reached, need more? Upgrade under settings/billing",
                Transient,
            ),
            (None, "rate_limit_error", "see your quota", Transient),
            (
                Some(429),
                "rate_limit_error",
                "burst rate, see your quota",
                Burst,
            ),
            (Some(400), "tokens", "no credit left", Quota),
            (Some(307), "", "", Config),
            (Some(500), "", "oops", Transient),
            (Some(502), "", "", Transient),
            (Some(529), "", "", Busy),
            (Some(400), "", "The server is busy, 请稍后重试", Busy),
            (None, "overloaded_error", "Overloaded", Busy),
            (None, "server_error", "The server had an error", Transient),
            (Some(400), "", "'messages' is too long", BadRequest),
            (
                Some(404),
                "model_not_found",
                "The model does not exist",
                Config,
            ),
            (None, "", "", BadRequest),
        ];
        for (status, code, message, expected) in table {
            assert_eq!(
                classify(ErrorReport {
                    status,
                    code,
                    message
                }),
                expected,
                "{status:?} {code} {message}"
            );
        }
    }
}

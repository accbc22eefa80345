//! Protobuf frames of Feishu's long connection.

use prost::Message;
use serde_json::Value;

/// Value of `method` in control frames.
pub const CONTROL: i32 = 0;
/// Value of `method` in data frames.
pub const DATA: i32 = 1;

/// Header of a frame.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct FeishuHeader {
    /// Key.
    #[prost(string, required, tag = "1")]
    pub key: String,
    /// Value.
    #[prost(string, required, tag = "2")]
    pub value: String,
}

/// Frame. The required fields are written also when they are zero.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct FeishuFrame {
    /// Sequence id.
    #[prost(uint64, required, tag = "1")]
    pub seq_id: u64,
    /// Log id.
    #[prost(uint64, required, tag = "2")]
    pub log_id: u64,
    /// Service of the connection.
    #[prost(int32, required, tag = "3")]
    pub service: i32,
    /// [`CONTROL`] or [`DATA`].
    #[prost(int32, required, tag = "4")]
    pub method: i32,
    /// Headers.
    #[prost(message, repeated, tag = "5")]
    pub headers: Vec<FeishuHeader>,
    /// Encoding of the payload.
    #[prost(string, optional, tag = "6")]
    pub payload_encoding: Option<String>,
    /// Type of the payload.
    #[prost(string, optional, tag = "7")]
    pub payload_type: Option<String>,
    /// Payload.
    #[prost(bytes = "bytes", optional, tag = "8")]
    pub payload: Option<bytes::Bytes>,
    /// New form of the log id.
    #[prost(string, optional, tag = "9")]
    pub log_id_new: Option<String>,
}

impl FeishuFrame {
    /// Returns the value of a header.
    pub fn header(&self, key: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|header| header.key == key)
            .map(|header| header.value.as_str())
    }
}

/// Builds a frame with headers in order.
pub(super) fn frame(
    method: i32,
    service: i32,
    ids: (u64, u64),
    headers: &[(&str, String)],
    payload: Vec<u8>,
) -> FeishuFrame {
    FeishuFrame {
        seq_id: ids.0,
        log_id: ids.1,
        service,
        method,
        headers: headers
            .iter()
            .map(|(key, value)| FeishuHeader {
                key: (*key).to_owned(),
                value: value.clone(),
            })
            .collect(),
        payload_encoding: None,
        payload_type: None,
        payload: Some(payload.into()),
        log_id_new: None,
    }
}

/// Builds the pong with the configuration of the client.
pub(super) fn pong(service: i32, config: &Value) -> FeishuFrame {
    let headers = [("type", "pong".to_owned())];
    frame(
        CONTROL,
        service,
        (0, 0),
        &headers,
        config.to_string().into_bytes(),
    )
}

/// Compares an acknowledgement with the last frame of its event and returns the code of its
/// payload. A success names its duration; the vendor's client omits it after a failure.
pub(super) fn check_ack(last: &FeishuFrame, ack: &FeishuFrame) -> Result<i64, String> {
    let payload: Value = serde_json::from_slice(ack.payload.as_deref().unwrap_or_default())
        .map_err(|error| format!("the payload of the acknowledgement is not JSON: {error}"))?;
    let code = payload["code"]
        .as_i64()
        .ok_or("the payload of the acknowledgement lacks a code")?;
    let mut expected = last.clone();
    expected.payload.clone_from(&ack.payload);
    let duration = ack.headers.last().filter(|header| header.key == "biz_rt");
    match duration {
        Some(duration) if duration.value.parse::<u64>().is_err() => {
            return Err(format!("biz_rt is not a number: {}", duration.value));
        }
        Some(duration) => expected.headers.push(duration.clone()),
        None if code == 200 => {
            return Err("the acknowledgement lacks the header biz_rt at its end".to_owned());
        }
        None => {}
    }
    if expected != *ack {
        return Err("the acknowledgement is not the last frame of its event".to_owned());
    }
    Ok(code)
}

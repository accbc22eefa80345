//! Protobuf frames of the long connection.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;

/// Value of `method` in control frames.
pub(super) const CONTROL: i32 = 0;
/// Value of `method` in data frames.
pub(super) const DATA: i32 = 1;

/// Header of a frame.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct FeishuHeader {
    #[prost(string, required, tag = "1")]
    pub(super) key: String,
    #[prost(string, required, tag = "2")]
    pub(super) value: String,
}

/// Frame. The fields 1 to 4 are written also when they are zero.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct FeishuFrame {
    #[prost(uint64, required, tag = "1")]
    pub(super) seq_id: u64,
    #[prost(uint64, required, tag = "2")]
    pub(super) log_id: u64,
    #[prost(int32, required, tag = "3")]
    pub(super) service: i32,
    #[prost(int32, required, tag = "4")]
    pub(super) method: i32,
    #[prost(message, repeated, tag = "5")]
    pub(super) headers: Vec<FeishuHeader>,
    #[prost(string, optional, tag = "6")]
    pub(super) payload_encoding: Option<String>,
    #[prost(string, optional, tag = "7")]
    pub(super) payload_type: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "8")]
    pub(super) payload: Option<Bytes>,
    #[prost(string, optional, tag = "9")]
    pub(super) log_id_new: Option<String>,
}

impl FeishuFrame {
    /// Returns the value of a header.
    pub(super) fn header(&self, key: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|header| header.key == key)
            .map(|header| header.value.as_str())
    }

    /// Returns the value of a header as a number.
    pub(super) fn number(&self, key: &str) -> Option<u32> {
        self.header(key)?.parse().ok()
    }

    /// Builds a ping.
    pub(super) fn ping(service: i32) -> Self {
        Self {
            service,
            method: CONTROL,
            headers: vec![FeishuHeader {
                key: "type".to_owned(),
                value: "ping".to_owned(),
            }],
            ..Self::default()
        }
    }

    /// Turns the last frame of an event into its acknowledgement. The code 500 asks for a
    /// redelivery.
    pub(super) fn into_ack(mut self, code: u16, duration: Duration) -> Self {
        self.headers.push(FeishuHeader {
            key: "biz_rt".to_owned(),
            value: duration.as_millis().to_string(),
        });
        // The space is that of the vendor's client.
        self.payload = Some(format!("{{\"code\": {code}}}").into());
        self
    }

    /// Returns the bytes of the frame.
    pub(super) fn bytes(&self) -> Bytes {
        self.encode_to_vec().into()
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;

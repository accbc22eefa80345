//! Frames against the recordings of the vendor's client.

use proptest::prelude::*;

use super::*;

const PING: &str = "08001000180320002a0c0a0474797065120470696e67";
const PONG: &str = "08001000180320002a0c0a04747970651204706f6e6742567b225265636f6e6e656374436f756e74223a202d312c20225265636f6e6e656374496e74657276616c223a20312c20225265636f6e6e6563744e6f6e6365223a20302c202250696e67496e74657276616c223a20317d";
const EVENT: &str = "080b100c180320012a0d0a047479706512056576656e742a110a0a6d6573736167655f696412036d2d312a100a0874726163655f6964120474722d312a080a0373756d1201312a080a0373657112013042ce037b22736368656d61223a22322e30222c22686561646572223a7b226576656e745f6964223a223565333730326138346538343735383262653864623766623733323833633032222c226576656e745f74797065223a22696d2e6d6573736167652e726563656976655f7631222c226372656174655f74696d65223a2231373633383730303030303030222c22746f6b656e223a22222c226170705f6964223a22636c695f61222c2274656e616e745f6b6579223a227431227d2c226576656e74223a7b2273656e646572223a7b2273656e6465725f6964223a7b226f70656e5f6964223a226f755f31222c22756e696f6e5f6964223a226f6e5f31222c22757365725f6964223a6e756c6c7d2c2273656e6465725f74797065223a2275736572222c2274656e616e745f6b6579223a227431227d2c226d657373616765223a7b226d6573736167655f6964223a226f6d5f31222c226372656174655f74696d65223a2231373633383730303030303030222c22636861745f6964223a226f635f31222c22636861745f74797065223a22703270222c226d6573736167655f74797065223a2274657874222c22636f6e74656e74223a227b5c22746578745c223a5c2268656c6c6f5c227d227d7d7d";
const ACK: &str = "080b100c180320012a0d0a047479706512056576656e742a110a0a6d6573736167655f696412036d2d312a100a0874726163655f6964120474722d312a080a0373756d1201312a080a037365711201302a0b0a0662697a5f7274120130420d7b22636f6465223a203230307d";
const ACK_OF_PARTS: &str = "080e100c180320012a0d0a047479706512056576656e742a110a0a6d6573736167655f696412036d2d322a100a0874726163655f6964120474722d322a080a0373756d1201322a080a037365711201312a0b0a0662697a5f7274120130420d7b22636f6465223a203230307d";

fn decoded(text: &str) -> FeishuFrame {
    FeishuFrame::decode(hex::decode(text).unwrap().as_slice()).unwrap()
}

#[test]
fn recorded_frames_encode_identically() {
    for recorded in [PING, PONG, EVENT, ACK, ACK_OF_PARTS] {
        assert_eq!(hex::encode(decoded(recorded).bytes()), recorded);
    }
}

#[test]
fn ping_equals_the_recording() {
    assert_eq!(hex::encode(FeishuFrame::ping(3).bytes()), PING);
}

#[test]
fn acknowledgement_equals_the_recording() {
    let ack = decoded(EVENT).into_ack(200, Duration::ZERO);
    assert_eq!(hex::encode(ack.bytes()), ACK);
}

#[test]
fn acknowledgement_of_parts_equals_the_recording() {
    let mut last = decoded(ACK_OF_PARTS);
    last.headers.pop();
    last.payload = Some(Bytes::from_static(b"part"));
    let ack = last.into_ack(200, Duration::ZERO);
    assert_eq!(hex::encode(ack.bytes()), ACK_OF_PARTS);
}

#[test]
fn headers_of_the_recorded_event_are_read() {
    let event = decoded(EVENT);
    assert_eq!((event.seq_id, event.log_id, event.service), (11, 12, 3));
    assert_eq!(event.header("message_id"), Some("m-1"));
    assert_eq!(
        (event.number("sum"), event.number("seq")),
        (Some(1), Some(0))
    );
    assert_eq!(event.number("trace_id"), None);
}

#[test]
fn required_fields_are_written_when_zero() {
    let empty = FeishuFrame::default();
    assert_eq!(hex::encode(empty.bytes()), "0800100018002000");
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        if let Ok(frame) = FeishuFrame::decode(bytes.as_slice()) {
            let again = FeishuFrame::decode(frame.bytes()).unwrap();
            prop_assert_eq!(again, frame);
        }
    }

    #[test]
    fn cut_recordings_are_decoded_or_refused(at in 0_usize..900, byte in any::<u8>()) {
        let mut bytes = hex::decode(EVENT).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        drop(FeishuFrame::decode(bytes.as_slice()));
        drop(FeishuFrame::decode(&bytes[..at]));
    }
}

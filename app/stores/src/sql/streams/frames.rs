//! Byte encoding of consecutive events of one attempt: name and data of each event, both with a
//! length prefix.

use bytes::{Buf, BufMut, Bytes};
use deerflow_runtime::stream_bridge::{EventId, StreamEvent};

/// Encodes events.
pub(super) fn encode(events: &[StreamEvent]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(
        events
            .iter()
            .map(|event| 2 * size_of::<u32>() + event.event.len() + event.data.len())
            .sum(),
    );
    for event in events {
        bytes.put_u32(length(event.event.len()));
        bytes.put_slice(event.event.as_bytes());
        bytes.put_u32(length(event.data.len()));
        event.data.pieces().for_each(|piece| bytes.put_slice(piece));
    }
    bytes
}

/// Decodes events; `first` is the id of the first one. Their data share the memory of `bytes`.
pub(super) fn decode(mut bytes: Bytes, first: EventId) -> Result<Vec<StreamEvent>, &'static str> {
    let mut events = Vec::new();
    let mut id = first;
    while !bytes.is_empty() {
        let name =
            String::from_utf8(part(&mut bytes)?.into()).map_err(|_| "a name is not UTF-8")?;
        events.push(StreamEvent {
            id,
            event: name.into(),
            data: part(&mut bytes)?.into(),
        });
        id.seq += 1;
    }
    Ok(events)
}

fn part(bytes: &mut Bytes) -> Result<Bytes, &'static str> {
    let length = bytes.try_get_u32().map_err(|_| "a length is incomplete")?;
    let length = usize::try_from(length).map_err(|_| "a length is too large")?;
    if length > bytes.len() {
        Err("bytes are missing")
    } else {
        Ok(bytes.split_to(length))
    }
}

/// Returns a length as 32 bits. No event reaches 4 GiB, because databases limit a value to less.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip_and_damage_is_an_error() {
        let first = EventId { seq: 7, attempt: 2 };
        let event = |seq, name: &'static str, data: &'static [u8]| StreamEvent {
            id: EventId { seq, ..first },
            event: name.into(),
            data: Bytes::from_static(data).into(),
        };
        let events = vec![
            event(7, "values", b"{}"),
            event(8, "", b""),
            event(9, "messages|a:1", b"[\0\xff]"),
        ];
        let bytes = Bytes::from(encode(&events));
        assert_eq!(decode(bytes.clone(), first), Ok(events));
        for cut in 1..bytes.len() {
            let whole = decode(bytes.slice(..cut), first).is_ok();
            assert!(!whole || [16, 24].contains(&cut), "cut at {cut}");
        }
        assert!(decode(Bytes::from_static(b"\xff\xff\xff\xffx"), first).is_err());
        assert!(decode(Bytes::from_static(b"\0\0\0\x01\xff\0\0\0\0"), first).is_err());
    }
}

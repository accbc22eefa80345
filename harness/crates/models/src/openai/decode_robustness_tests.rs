//! Property tests of the decoder: encoded, split, truncated and damaged answers.

use super::*;

fn encode(generated: &GeneratedAnswer) -> String {
    let mut deltas: Vec<Value> = generated
        .pieces(&generated.thought)
        .iter()
        .map(|piece| json!({"reasoning_content": piece}))
        .collect();
    deltas.extend(
        generated
            .pieces(&generated.text)
            .iter()
            .map(|piece| json!({"content": piece})),
    );
    for (at, (name, args)) in generated.calls.iter().enumerate() {
        deltas.push(call(
            Some(at as u64),
            Some(&format!("c{at}")),
            Some(name),
            "",
        ));
        deltas.extend(
            generated
                .pieces(&args.to_string())
                .iter()
                .map(|piece| call(Some(at as u64), None, None, piece)),
        );
    }
    finished(&deltas)
}

#[test]
fn encoded_answers_decode_to_themselves() {
    check_round_trip(|| reader(Dialect::OPENAI), encode);
}

#[test]
fn decoder_survives_splits_truncation_and_damage() {
    check_robustness(|| reader(Dialect::OPENAI), RECORDED);
}

#[test]
fn one_megabyte_line_is_decoded() {
    let long = "x".repeat(1 << 20);
    assert_eq!(
        message(&finished(&[json!({"content": long})]))
            .content
            .text()
            .len(),
        1 << 20
    );
}

fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let edit = (any::<prop::sample::Index>(), 0..6_u8, any::<u8>());
    prop::collection::vec(edit, 1..8).prop_map(|edits| {
        let mut bytes = RECORDED.as_bytes().to_vec();
        for (at, how, byte) in edits {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            match how {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] = byte,
                2 => bytes.insert(at, b'\n'),
                3 if at < bytes.len() => drop(bytes.remove(at)),
                4 => bytes
                    .splice(at..at, b"\"index\":99,".iter().copied())
                    .for_each(drop),
                _ => bytes.extend_from_within(at..),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_split_gives_the_same_chunks(cuts in prop::collection::vec(0..=RECORDED.len(), 0..12)) {
        let mut cuts = cuts;
        cuts.extend([0, RECORDED.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &RECORDED.as_bytes()[pair[0]..pair[1]]).collect();
        prop_assert_eq!(decoded_in(&pieces), decoded(RECORDED));
    }

    #[test]
    fn damaged_stream_completes_or_fails_without_panic(bytes in damaged()) {
        let (chunks, error) = decoded_in(&[&bytes]);
        let whole = chunks.last().is_some_and(|chunk| chunk.chunk_position == Some("last"));
        prop_assert_eq!(whole, error.is_none());
        let _ = accumulated(&chunks);
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = decoded_in(&[&bytes]);
    }
}

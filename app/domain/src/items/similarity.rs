//! Cosine similarity of embeddings.

/// Returns the cosine of the angle between two vectors; `None` if their lengths differ or one of
/// them is zero.
pub fn cosine(one: &[f32], other: &[f32]) -> Option<f64> {
    if one.len() != other.len() {
        return None;
    }
    let (mut dot, mut ones, mut others) = (0.0_f64, 0.0_f64, 0.0_f64);
    for (a, b) in one.iter().zip(other) {
        let (a, b) = (f64::from(*a), f64::from(*b));
        dot += a * b;
        ones += a * a;
        others += b * b;
    }
    let cosine = dot / (ones.sqrt() * others.sqrt());
    cosine.is_finite().then(|| cosine.clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosine_ignores_vector_length() {
        assert_eq!(cosine(&[1.0, 0.0], &[5.0, 0.0]), Some(1.0));
        assert_eq!(cosine(&[1.0, 0.0], &[0.0, 2.0]), Some(0.0));
        assert_eq!(cosine(&[1.0, 0.0], &[-3.0, 0.0]), Some(-1.0));
        for (one, other) in [
            (vec![1.0], vec![1.0, 0.0]),
            (vec![0.0], vec![1.0]),
            (vec![], vec![]),
        ] {
            assert_eq!(cosine(&one, &other), None);
        }
    }
}

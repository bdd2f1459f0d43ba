//! Smaller inputs that still fail.

/// The smallest bytes found that still fail: halves are taken out first, then ever shorter runs, then single bytes
/// become zeros or spaces. `fails` is called at most `tries` times.
///
/// ```
/// use cranefold_fuzz::minimise::minimised;
///
/// let has_both = |bytes: &[u8]| bytes.contains(&b'[') && bytes.contains(&b']');
/// assert_eq!(minimised(b"sum f32[2,3] axes=[1]", 1000, has_both), b"[]");
/// ```
pub fn minimised(bytes: &[u8], tries: usize, mut fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut least = bytes.to_vec();
    let mut left = tries;
    let mut len = least.len().div_ceil(2).max(1);
    while left > 0 && !least.is_empty() {
        let (mut at, mut shorter) = (0, false);
        while at < least.len() && left > 0 {
            let cut = [&least[..at], &least[least.len().min(at + len)..]].concat();
            left -= 1;
            if fails(&cut) {
                (least, shorter) = (cut, true);
            } else {
                at += len;
            }
        }
        if len == 1 && !shorter {
            break;
        }
        len = if shorter { len } else { len.div_ceil(2) };
    }
    for at in 0..least.len() {
        let plain = if least.is_ascii() { b' ' } else { 0 };
        let before = std::mem::replace(&mut least[at], plain);
        if before != plain && (left == 0 || !fails(&least)) {
            least[at] = before;
        }
        left = left.saturating_sub(1);
    }
    least
}

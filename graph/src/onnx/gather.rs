//! Elements by index.

use super::node::{Cx, Results};

pub(super) fn elements(cx: &mut Cx) -> Results {
    let (x, index, axis, name) = (cx.input(0)?, cx.input(1)?, cx.axis(0)?, cx.name(0));
    cx.lower.pick(name, &x, &index, axis).map(|value| vec![value])
}

pub(super) fn gather(cx: &mut Cx) -> Results {
    let (x, index, axis, name) = (cx.input(0)?, cx.input(1)?, cx.axis(0)?, cx.name(0));
    cx.lower.gather(name, &x, &index, axis, cx.feeds_reduction).map(|value| vec![value])
}

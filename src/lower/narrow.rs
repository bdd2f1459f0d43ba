//! Positions in narrow integers, which fill as many lanes as the elements beside them.

use cranefold_ir::{Def, Expr, Op, Var};

/// A lift over its position in a narrower integer, if it converts the position to this one alone and that holds all
/// positions of a slice of `count` elements; the argument at `place` is changed with it.
pub(super) fn lift(lift: &Def, place: usize, arguments: &mut [Expr], count: u64) -> Option<Def> {
    let Expr::At(dtype, index) = arguments.get(place)? else { return None };
    let position = Expr::Var(Var(place as u32), *dtype);
    let is_converted = |e: &Expr| matches!(e, Expr::Op(Op::Cast, _, args) if args[0] == position);
    let (mut named, mut narrow) = (0, vec![]);
    lift.lets.iter().chain(&lift.results).for_each(|e| {
        e.visit(&mut |e| {
            named += usize::from(*e == position);
            narrow.extend(is_converted(e).then(|| e.dtype()));
        })
    });
    let to = *narrow.first()?;
    let holds_all = to.is_int() && count <= 1 << (to.bits() - 1).min(63);
    if !holds_all || narrow.len() != named || narrow.iter().any(|&other| other != to) {
        return None;
    }
    arguments[place] = Expr::At(to, index.clone());
    let mut lift = lift.clone();
    lift.params[place] = to;
    let each = lift.lets.iter_mut().chain(&mut lift.results);
    each.for_each(|e| {
        e.each_mut(&mut |e| {
            if is_converted(e) {
                *e = Expr::Var(Var(place as u32), to);
            }
        })
    });
    Some(lift)
}

//! Several reducers in one pass.

use super::part::places;
use super::{Method, Phase, Reducer, StateSize};
use crate::{DType, Def, Expr, Scalar};

/// The condition on which a reduction takes part in another over the walk with this number: true if their trees are equal
/// in each phase of the first, and, where it has one phase alone, no bit of it shows that its lanes fold at the end of
/// each block.
pub type Agree<'a> = dyn Fn(usize, &Method, &Method) -> bool + 'a;

/// The property by which reducers share a tree: the states, and whether lanes stay apart while blocks merge.
#[derive(Clone, PartialEq)]
struct Kind {
    states: Vec<StateSize>,
    keeps_lanes: bool,
    commutative: bool,
}

impl Kind {
    fn of(method: &Method) -> Kind {
        Kind { states: method.tree_states(), keeps_lanes: method.keeps_lanes(), commutative: method.is_commutative() }
    }
}

/// Reducers that share a tree.
pub(crate) struct Members {
    /// The state that the tree follows in each phase; empty if any tree does.
    pub alone: Vec<StateSize>,
    /// The numbers of the reducers, in order.
    pub numbers: Vec<usize>,
}

/// The groups of reducers that share a tree. Reducers that are exact in every order follow any tree: that of a group with
/// as many phases, or their own if there is none. `own` says which are a user's, of whose operations nothing is known.
///
/// A group that another computes too, or of one phase that the first phase of another does, becomes a part of that one,
/// where their trees `agree`.
pub(super) fn groups(reducers: &[Reducer], own: &[bool], (walk, agree): (usize, &Agree)) -> Vec<Members> {
    let mut groups: Vec<(Kind, Vec<usize>)> = vec![];
    let is_exact = |i: usize| !own[i] && reducers[i].method.is_exact();
    let (exact, others): (Vec<usize>, Vec<usize>) = (0..reducers.len()).partition(|&i| is_exact(i));
    for i in others {
        let kind = Kind::of(&reducers[i].method);
        match groups.iter_mut().find(|(k, _)| *k == kind) {
            Some((_, members)) => members.push(i),
            None => groups.push((kind, vec![i])),
        }
    }
    if groups.is_empty() {
        return vec![Members { alone: vec![], numbers: exact }];
    }
    let apart = with_exact(&mut groups, exact, reducers);
    join_parts(&mut groups, reducers, |part, whole| agree(walk, part, whole));
    join_first_phases(&mut groups, reducers, |one, several| agree(walk, one, several));
    let sorted = |(kind, mut numbers): (Kind, Vec<usize>)| {
        numbers.sort_unstable();
        Members { alone: kind.states, numbers }
    };
    let mut all: Vec<Members> = groups.into_iter().map(sorted).collect();
    if !apart.is_empty() {
        all.push(Members { alone: vec![], numbers: apart });
    }
    all
}

/// Adds exact reducers to groups; returns those that no group takes, in order.
///
/// With several phases, lanes fold at the end of each block: a reduction of one phase keeps its tree only beside others
/// of one phase. Beside several phases it takes part in the first if that is exact too, for it has few lanes then.
fn with_exact(groups: &mut [(Kind, Vec<usize>)], exact: Vec<usize>, reducers: &[Reducer]) -> Vec<usize> {
    let (one, several): (Vec<usize>, Vec<usize>) = exact.into_iter().partition(|&i| reducers[i].method.keeps_lanes());
    let of_one = groups.iter().position(|(k, _)| k.keeps_lanes && k.commutative);
    let begins_exact = |members: &[usize]| members.iter().all(|&m| reducers[m].method.phases()[0].is_exact());
    let of_several = groups.iter().position(|(k, members)| !k.keeps_lanes && k.commutative && begins_exact(members));
    let mut apart = vec![];
    match of_several {
        Some(group) => groups[group].1.extend(several),
        None => apart.extend(several),
    }
    match of_one.or(of_several) {
        Some(group) => groups[group].1.extend(one),
        None => apart.extend(one),
    }
    apart.sort_unstable();
    apart
}

/// Moves reducers of several phases into a group that computes them too, if their trees agree: a mean as a pair is found
/// on the way to a variance.
fn join_parts(groups: &mut Vec<(Kind, Vec<usize>)>, reducers: &[Reducer], agree: impl Fn(&Method, &Method) -> bool) {
    let method = |i: usize| &reducers[i].method;
    let folds = |(kind, _): &(Kind, Vec<usize>)| !kind.keeps_lanes && kind.commutative;
    for whole in 0..groups.len() {
        for part in (0..groups.len()).filter(|&part| part != whole) {
            if !folds(&groups[whole]) || !folds(&groups[part]) {
                continue;
            }
            let all = groups[whole].1.clone();
            let computing = |i: usize| all.iter().copied().find(|&m| places(method(i), method(m)).is_some());
            let is_part = |&i: &usize| computing(i).is_some_and(|m| agree(method(i), method(m)));
            let parts: Vec<usize> = groups[part].1.extract_if(.., |i| is_part(i)).collect();
            groups[whole].1.extend(parts);
        }
    }
    groups.retain(|(_, members)| !members.is_empty());
}

/// Makes a group of one phase a part of a group of several if every reducer in it computes what the first phase of the
/// other does, and their trees agree. If only those disagree, it comes behind the other, whose lanes it may take.
fn join_first_phases(
    groups: &mut Vec<(Kind, Vec<usize>)>,
    reducers: &[Reducer],
    agree: impl Fn(&Method, &Method) -> bool,
) {
    let first = |i: usize| &reducers[i].method.phases()[0];
    let alike = |a: &Phase, b: &Phase| (&a.identity, &a.lift, &a.combine) == (&b.identity, &b.lift, &b.combine);
    let Some(one) = groups.iter().position(|(kind, _)| kind.keeps_lanes && kind.commutative) else { return };
    let computes = |(kind, members): &(Kind, Vec<usize>)| {
        !kind.keeps_lanes
            && kind.commutative
            && groups[one].1.iter().all(|&i| members.iter().any(|&m| alike(first(i), first(m))))
    };
    let agrees = |members: &[usize]| agree(&reducers[groups[one].1[0]].method, &reducers[members[0]].method);
    if let Some(several) = groups.iter().position(|group| computes(group) && agrees(&group.1)) {
        let (_, members) = groups[one].clone();
        groups[several].1.extend(members);
        groups.remove(one);
    } else if let Some(several) = groups.iter().position(computes).filter(|&several| several > one) {
        groups[one..=several].rotate_left(1);
    }
}

/// The reducers side by side, over the same elements. Phase k of the product is made of phase k of
/// each; their common monoids are computed once:
///
/// ```text
/// min, max           one phase, one state: both finish from the same bits
/// log_sum_exp, max   two phases; the greatest element, once, is the pivot of the one and the result
///                    of the other
/// ```
///
/// The tree is the one that each reducer has alone: [`groups`] puts only such reducers side by side.
///
/// None of them selects. `inputs` are the types that all lifts take first, `positions` says whether they take
/// the position too, and `count` is the number of elements.
pub(crate) fn product(
    mut reducers: Vec<Reducer>,
    alone: Vec<StateSize>,
    inputs: &[DType],
    positions: bool,
    count: u64,
) -> Reducer {
    if reducers.len() == 1 {
        return reducers.remove(0);
    }
    // The parameters of all lifts before the results of earlier phases.
    let common = inputs.len() + usize::from(positions);
    let mut members: Vec<Member> = vec![];
    // Of each reducer the number of its member, and the places of its state in the member's if it is a part of it.
    let mut of: Vec<(usize, Option<Vec<usize>>)> = vec![];
    for reducer in &reducers {
        let mut others = reducers.iter().filter(|other| count > 0 && other.method != reducer.method);
        let part = others.find_map(|other| Some((other, places(&reducer.method, &other.method)?)));
        let (whole, places) = part.map_or((reducer, None), |(whole, places)| (whole, Some(places)));
        // Over nothing the minimum and the maximum have different states.
        let alike = |m: &Member| m.method == whole.method && (count > 0 || m.nothing == whole.nothing);
        let known = members.iter().position(alike).unwrap_or_else(|| {
            members.push(Member { method: whole.method.clone(), nothing: whole.nothing.clone(), slots: vec![] });
            members.len() - 1
        });
        of.push((known, places));
    }
    let phases = phases(&mut members, common, count > 0);
    let commutative = members.iter().all(|m| m.method.is_commutative());
    let state: Vec<DType> = slot_types(&members);
    let merge = Def::build("merge", &[state.clone(), state.clone()].concat(), |lets, args| {
        let (older, newer) = args.split_at(state.len());
        let mut values: Vec<Option<Expr>> = vec![None; state.len()];
        for member in &members {
            let own = |all: &[Expr]| member.slots.iter().map(|&s| all[s].clone()).collect::<Vec<_>>();
            let merged = lets.splice(member.merge(), &[own(older), own(newer)].concat());
            member.slots.iter().zip(merged).for_each(|(&s, value)| values[s] = Some(value));
        }
        values.into_iter().map(|v| v.expect("every part of the state is merged")).collect()
    });
    let finish = Def::build("finish", &state, |lets, args| {
        let mut results = vec![];
        for (reducer, (member, places)) in reducers.iter().zip(&of) {
            let own = members[*member].slots.iter().map(|&s| args[s].clone());
            let own: Vec<Expr> = match places {
                None => own.collect(),
                Some(places) => places.iter().map(|&place| args[members[*member].slots[place]].clone()).collect(),
            };
            results.extend(lets.splice(&reducer.finish, &own));
        }
        results
    });
    let mut nothing = vec![None; state.len()];
    for member in &members {
        member.slots.iter().zip(&member.nothing).for_each(|(&s, &value)| nothing[s] = Some(value));
    }
    let nothing: Vec<Scalar> = nothing.into_iter().map(|v| v.expect("every part of the state")).collect();
    let merge = match phases.as_slice() {
        [one] if one.close.is_none() => one.combine.clone(),
        _ => merge,
    };
    let method = Method::Phases { phases, merge, commutative, alone, search: None };
    Reducer { method, finish, reads: vec![], nothing, apply: None }
}

/// One of the methods, and the places of its state's parts in the product's.
struct Member {
    method: Method,
    nothing: Vec<Scalar>,
    slots: Vec<usize>,
}

impl Member {
    fn merge(&self) -> &Def {
        match &self.method {
            Method::Phases { merge, .. } => merge,
            Method::Select { .. } => unreachable!("the spec keeps selections alone"),
        }
    }

    fn phase(&self, k: usize) -> Option<&Phase> {
        self.method.phases().get(k)
    }
}

/// The types of the product's state, as far as the phases have filled it.
fn slot_types(members: &[Member]) -> Vec<DType> {
    let mut types = vec![];
    for member in members {
        for (&slot, result) in member.slots.iter().zip(&member.merge().results) {
            if types.len() <= slot {
                types.resize(slot + 1, result.dtype());
            }
            types[slot] = result.dtype();
        }
    }
    types
}

/// The phases of the product; fills the members' slots.
fn phases(members: &mut [Member], common: usize, share: bool) -> Vec<Phase> {
    let most = members.iter().map(|m| m.method.phases().len()).max().expect("a reducer");
    let mut slots = 0;
    (0..most).map(|k| phase(members, k, most, common, &mut slots, share)).collect()
}

/// The members' phase k in one: each monoid once, if they `share`.
fn phase(members: &mut [Member], k: usize, phases: usize, common: usize, slots: &mut usize, share: bool) -> Phase {
    // A monoid, the slots its lift reads, and the start of its state.
    let mut monoids: Vec<(Phase, Vec<usize>, usize)> = vec![];
    let mut parts = 0;
    let mut of: Vec<Option<usize>> = vec![];
    for member in members.iter() {
        let Some(own) = member.phase(k) else {
            of.push(None);
            continue;
        };
        let same = |(p, earlier, _): &(Phase, Vec<usize>, usize)| {
            (&p.identity, &p.lift, &p.combine, &p.update) == (&own.identity, &own.lift, &own.combine, &own.update)
                && *earlier == member.slots
        };
        let known = monoids.iter().position(same).filter(|_| share);
        of.push(Some(known.unwrap_or_else(|| {
            monoids.push((own.clone(), member.slots.clone(), parts));
            parts += own.identity.len();
            monoids.len() - 1
        })));
    }
    let identity: Vec<Scalar> = monoids.iter().flat_map(|(p, _, _)| p.identity.clone()).collect();
    let state: Vec<DType> = identity.iter().map(|s| s.dtype()).collect();
    let inputs: Vec<DType> = monoids[0].0.lift.params[..common].to_vec();
    let earlier = slot_types(members);
    let lift = Def::build(format!("lift_{k}"), &[inputs, earlier].concat(), |lets, args| {
        let (elements, earlier) = args.split_at(common);
        let mut values = vec![];
        for (p, reads, _) in &monoids {
            let reads: Vec<Expr> = reads.iter().map(|&s| earlier[s].clone()).collect();
            values.extend(lets.splice(&p.lift, &[elements, &reads].concat()));
        }
        values
    });
    let combine = Def::build(format!("combine_{k}"), &[state.clone(), state.clone()].concat(), |lets, args| {
        let (older, newer) = args.split_at(state.len());
        let mut values = vec![];
        for (p, _, start) in &monoids {
            let own = *start..start + p.identity.len();
            values.extend(lets.splice(&p.combine, &[&older[own.clone()], &newer[own]].concat()));
        }
        values
    });
    let update = monoids.iter().any(|(p, _, _)| p.update.is_some()).then(|| {
        let params = [state.as_slice(), &lift.params].concat();
        Def::build(format!("update_{k}"), &params, |lets, args| {
            let (state, taken) = args.split_at(state.len());
            let (elements, earlier) = taken.split_at(common);
            let mut values = vec![];
            for (p, reads, start) in &monoids {
                let own = &state[*start..start + p.identity.len()];
                let reads: Vec<Expr> = reads.iter().map(|&s| earlier[s].clone()).collect();
                values.extend(match &p.update {
                    Some(update) => lets.splice(update, &[own, elements, &reads].concat()),
                    None => {
                        let lifted = lets.splice(&p.lift, &[elements, &reads].concat());
                        lets.splice(&p.combine, &[own, &lifted].concat())
                    }
                });
            }
            values
        })
    });
    // Without a second phase the state itself is merged.
    let count = members.iter().zip(&of).find_map(|(m, of)| {
        of.and(m.phase(k).and_then(|p| p.close.as_ref())).map(|c| *c.params.last().expect("the number of elements"))
    });
    let mut results: Vec<(usize, Option<Def>, usize)> = vec![];
    for (member, of) in members.iter_mut().zip(&of) {
        let (Some(monoid), Some(own)) = (*of, member.phase(k).cloned()) else { continue };
        let width = own.close.as_ref().map_or(own.identity.len(), |c| c.results.len());
        // Only members with the same merge may share a result, and such members are one.
        results.push((monoid, own.close.clone(), width));
        member.slots.extend(*slots..*slots + width);
        *slots += width;
    }
    // With one phase and nothing to close, the members share the state itself.
    let shared = phases == 1 && count.is_none();
    let is_state = shared || (count.is_none() && results.len() == monoids.len());
    if shared {
        let mut start = 0;
        for (member, of) in members.iter_mut().zip(&of) {
            let Some(monoid) = of else { continue };
            let (p, _, at) = &monoids[*monoid];
            member.slots = (*at..at + p.identity.len()).collect();
            start = start.max(at + p.identity.len());
        }
        *slots = start;
    }
    let close = (!is_state).then(|| {
        let count = count.unwrap_or(DType::F32);
        Def::build(format!("close_{k}"), &[state.clone(), vec![count]].concat(), |lets, args| {
            let (state, count) = args.split_at(state.len());
            let mut values = vec![];
            for (monoid, close, _) in &results {
                let (p, _, start) = &monoids[*monoid];
                let own = &state[*start..start + p.identity.len()];
                match close {
                    None => values.extend(own.iter().cloned()),
                    Some(close) => {
                        let to = *close.params.last().expect("the number of elements");
                        let count = count[0].clone().cast(to);
                        values.extend(lets.splice(close, &[own, &[count]].concat()));
                    }
                }
            }
            values
        })
    });
    Phase { identity, lift, combine, update, close }
}

//! Lower limits of arguments that become masks of results.

use cranefold_ir::{Def, Expr, Op, Scalar, Var};

/// Moves the lower limit of an argument to the product with a power of two that it leads to, where that product of the
/// limit is +0; `None` if there is none such:
///
/// ```text
/// let v1 = select(lt(v0, -120.0:f32), -120.0:f32, v0)
/// let v2 = n(v1)
/// scale(f(v1, v2), v2)
/// ->
/// let v1 = v0
/// let v2 = n(v1)
/// select(lt(v0, -120.0:f32), 0.0:f32, scale(f(v1, v2), v2))
/// ```
///
/// Legal because the product is a function g of v1 alone: g of a selection is the selection of g of either. In vectors with
/// masks the selection is the mask of the instruction that multiplies. Processors that take long to round a result to a
/// subnormal number, some 150 cycles a vector, are not asked to where the result is 0.
pub(super) fn as_masks(def: &Def) -> Option<Def> {
    let mut changed: Option<Def> = None;
    for place in 0..def.lets.len() {
        let def = changed.as_ref().unwrap_or(def);
        let next = Limit::of(def, place).and_then(|limit| limit.moved(def));
        changed = next.or(changed);
    }
    changed
}

/// A value of a definition that is another value, or a limit if that is less.
struct Limit {
    /// The number of the value.
    place: usize,
    unlimited: Var,
    limit: Scalar,
}

impl Limit {
    /// The limit that a value of a definition is.
    fn of(def: &Def, place: usize) -> Option<Limit> {
        let Expr::Op(Op::Select, dtype, args) = &def.lets[place] else { return None };
        let [Expr::Op(Op::Lt, _, compared), limit, value] = args.as_slice() else { return None };
        let (Expr::Const(number), Expr::Var(unlimited, _)) = (limit, value) else { return None };
        let is_limit = dtype.is_float() && compared[0] == *value && compared[1] == *limit;
        is_limit.then_some(Limit { place, unlimited: *unlimited, limit: *number })
    }

    /// The definition with the limit at the product that it leads to.
    fn moved(&self, def: &Def) -> Option<Def> {
        let (cone, product) = self.product(def)?;
        let of_limit = Def::build("product", &[product.dtype()], |lets, args| {
            let mut values = vec![args[0].clone(); def.params.len() + def.lets.len()];
            for &number in &cone {
                let value = def.lets[number].clone().with_vars(&values);
                values[def.params.len() + number] = lets.bind(value);
            }
            vec![product.clone().with_vars(&values)]
        });
        let zero = Scalar::float(product.dtype(), 0.0);
        if of_limit.eval(&[self.limit]) != [zero] {
            return None;
        }
        let dtype = product.dtype();
        let unlimited = Expr::Var(self.unlimited, dtype);
        let below = unlimited.clone().lt(Expr::Const(self.limit));
        let masked = |e: Expr| if e == product { below.clone().select(Expr::Const(zero), e) } else { e };
        let mut moved = def.clone();
        moved.lets[self.place] = unlimited;
        moved.lets.iter_mut().chain(&mut moved.results).for_each(|e| {
            *e = std::mem::replace(e, Expr::Const(zero)).rewrite(&mut |e| masked(e));
        });
        Some(moved)
    }

    /// The product with a power of two that is a function of the limited value alone, if all uses of that value lead to
    /// it; with the numbers of the values on the way.
    fn product(&self, def: &Def) -> Option<(Vec<usize>, Expr)> {
        let first = def.params.len();
        let mut depends = vec![false; first + def.lets.len()];
        depends[first + self.place] = true;
        let mut cone = vec![];
        let mut product = None;
        for (number, value) in def.lets.iter().enumerate().skip(self.place + 1) {
            let found = product_in(value, &depends);
            if found.is_some() && product.is_some() {
                return None;
            }
            product = product.or(found.cloned());
            if product.is_none() && vars(value).iter().any(|v| depends[v.0 as usize]) {
                depends[first + number] = true;
                cone.push(number);
            }
        }
        for result in &def.results {
            let found = product_in(result, &depends);
            if found.is_some() && product.is_some() {
                return None;
            }
            product = product.or(found.cloned());
        }
        let product = product?;
        // No use of a value on the way lies elsewhere.
        let uses = |e: &Expr| vars(e).iter().filter(|v| depends[v.0 as usize]).count();
        let all: usize = def.lets.iter().chain(&def.results).map(uses).sum();
        let on_the_way: usize = cone.iter().map(|&number| uses(&def.lets[number])).sum();
        let alone = |e: &Expr| vars(e).iter().all(|v| depends[v.0 as usize]);
        let is_function = cone.iter().all(|&number| alone(&def.lets[number])) && alone(&product);
        (is_function && all == on_the_way + uses(&product)).then_some((cone, product))
    }
}

/// The product with a power of two in an expression, of values that depend on the limit.
fn product_in<'a>(e: &'a Expr, depends: &[bool]) -> Option<&'a Expr> {
    let mut found = None;
    e.visit(&mut |e| {
        let is_product = matches!(e, Expr::Op(Op::Scale | Op::ScaleDown, ..));
        if is_product && vars(e).iter().any(|v| depends[v.0 as usize]) {
            found = Some(e);
        }
    });
    found
}

/// The variables of an expression, each as often as it is used.
fn vars(e: &Expr) -> Vec<Var> {
    let mut vars = vec![];
    e.visit(&mut |e| {
        if let Expr::Var(v, _) = e {
            vars.push(*v);
        }
    });
    vars
}

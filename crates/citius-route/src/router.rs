//! The table of routes.

use smallvec::SmallVec;

use crate::exact::ExactPaths;
use crate::pattern::{Param, Pattern, PatternError};
use crate::percent::{decode, normalize};

/// Parameter values in the order of [`Pattern::params`], percent-decoded.
pub type Captures = SmallVec<[Vec<u8>; 2]>;

/// The method of routes for every method, as far as a path has no route for the method itself.
const ANY_METHOD: &str = "*";

/// All routes of one application; `T` is the value of a route.
#[derive(Clone, Debug)]
pub struct Router<T> {
    /// Patterns without parameters, by their normal form: most services' most asked paths.
    paths: ExactPaths<T>,
    /// Patterns of a fixed number of segments.
    exact: matchit::Router<usize>,
    /// Patterns that end in a rest, with and without it; asked when `exact` has no response.
    rests: matchit::Router<usize>,
    nodes: Vec<Node<T>>,
}

/// The routes of one shape.
#[derive(Clone, Debug)]
struct Node<T> {
    shape: String,
    is_rest: bool,
    candidates: Vec<Candidate<T>>,
}

/// The routes of one pattern.
#[derive(Clone, Debug)]
struct Candidate<T> {
    params: Vec<Param>,
    /// The last parameter is a rest that matched nothing.
    rest_is_empty: bool,
    methods: Vec<(String, T)>,
}

/// What a method and a path lead to.
#[derive(Debug)]
pub enum Found<'r, T> {
    /// A route.
    Route(&'r T),
    /// The path exists, the method does not: the value of `Allow`.
    MethodNotAllowed(String),
    /// There is no such path.
    Nothing,
}

impl<T> Default for Router<T> {
    fn default() -> Self {
        Self {
            paths: ExactPaths::default(),
            exact: matchit::Router::new(),
            rests: matchit::Router::new(),
            nodes: Vec::new(),
        }
    }
}

impl<T: Clone> Router<T> {
    /// Adds a route.
    ///
    /// # Errors
    /// [`PatternError`] if the tree cannot hold the pattern or the route exists.
    pub fn insert(
        &mut self,
        method: &str,
        pattern: &Pattern,
        value: T,
    ) -> Result<(), PatternError> {
        let Some(rest_at) = pattern.shape.rfind("{*") else {
            return self.insert_shape(&pattern.shape, method, pattern, Rest::Never, value);
        };
        let without = &pattern.shape[..rest_at];
        self.insert_shape(without, method, pattern, Rest::Empty, value.clone())?;
        self.insert_shape(&pattern.shape, method, pattern, Rest::Present, value)
    }

    /// The node of `shape`, which is made if there is none.
    fn node_of(&mut self, shape: &str, is_rest: bool) -> Result<usize, PatternError> {
        let known = |node: &Node<T>| node.is_rest == is_rest && node.shape == shape;
        if let Some(index) = self.nodes.iter().position(known) {
            return Ok(index);
        }
        let index = self.nodes.len();
        let tree = if is_rest {
            &mut self.rests
        } else {
            &mut self.exact
        };
        tree.insert(shape, index)
            .map_err(|error| PatternError(format!("route pattern {shape:?}: {error}")))?;
        self.nodes.push(Node {
            shape: shape.to_owned(),
            is_rest,
            candidates: Vec::new(),
        });
        Ok(index)
    }

    fn insert_shape(
        &mut self,
        shape: &str,
        method: &str,
        pattern: &Pattern,
        rest: Rest,
        value: T,
    ) -> Result<(), PatternError> {
        let index = self.node_of(shape, rest != Rest::Never)?;
        let rest_is_empty = rest == Rest::Empty;
        let candidates = &mut self.nodes[index].candidates;
        let same = |candidate: &&mut Candidate<T>| {
            candidate.rest_is_empty == rest_is_empty
                && candidate.params.len() == pattern.params.len()
                && candidate
                    .params
                    .iter()
                    .zip(&pattern.params)
                    .all(|(a, b)| a.converter == b.converter)
        };
        if let Some(candidate) = candidates.iter_mut().find(same) {
            if candidate.methods.iter().any(|(known, _)| known == method) {
                return Err(PatternError(format!(
                    "route {method} {shape:?} exists already"
                )));
            }
            candidate.methods.push((method.to_owned(), value.clone()));
        } else {
            let value = value.clone();
            candidates.push(Candidate {
                params: pattern.params.clone(),
                rest_is_empty,
                methods: vec![(method.to_owned(), value)],
            });
            candidates.sort_by_key(|candidate| {
                candidate
                    .params
                    .iter()
                    .map(|param| param.converter)
                    .collect::<Vec<_>>()
            });
        }
        if pattern.params.is_empty() {
            let entry = self.paths.entry(shape.as_bytes(), index);
            if method == "GET" {
                entry.get = Some(value);
            }
        }
        Ok(())
    }
}

impl<T> Router<T> {
    /// Looks up `method` and `path` (as sent); appends the parameters of a route to `captures`.
    ///
    /// `HEAD` is answered by a `GET` route where there is no other.
    #[inline]
    pub fn find(&self, method: &str, path: &[u8], captures: &mut Captures) -> Found<'_, T> {
        if cfg!(not(feature = "slow-paths"))
            && let Some(entry) = self.paths.get(path)
        {
            match &entry.get {
                Some(value) if method == "GET" => return Found::Route(value),
                _ => {
                    if let Choice::Route(value, _) = self.nodes[entry.node].choose(method, &[]) {
                        return Found::Route(value);
                    }
                }
            }
        }
        let normal = normalize(path);
        let mut refused: Vec<&Candidate<T>> = Vec::new();
        for tree in [&self.exact, &self.rests] {
            let Ok(matched) = tree.at(&normal) else {
                continue;
            };
            let values: SmallVec<[&str; 4]> =
                matched.params.iter().map(|(_, value)| value).collect();
            match self.nodes[*matched.value].choose(method, &values) {
                Choice::Route(value, candidate) => {
                    candidate.capture(&values, captures);
                    return Found::Route(value);
                }
                Choice::Method => {
                    refused.extend(self.nodes[*matched.value].accepting(&values));
                }
                Choice::Nothing => {}
            }
        }
        if refused.is_empty() {
            return Found::Nothing;
        }
        // All patterns that take the path: a request with another method may be for any of them.
        let methods = refused.iter().flat_map(|candidate| &candidate.methods);
        let mut methods: Vec<&str> = methods.map(|(method, _)| method.as_str()).collect();
        Found::MethodNotAllowed(complete_allow(&mut methods))
    }

    /// The methods that any route answers, as the value of `Allow` for `OPTIONS *`.
    pub fn allow_all(&self) -> String {
        let mut methods: Vec<&str> = self
            .nodes
            .iter()
            .flat_map(|node| &node.candidates)
            .flat_map(|candidate| candidate.methods.iter().map(|(method, _)| method.as_str()))
            .collect();
        complete_allow(&mut methods)
    }
}

/// How a shape stands to the rest at the end of its pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Never,
    Empty,
    Present,
}

/// What one node says.
enum Choice<'r, T> {
    Route(&'r T, &'r Candidate<T>),
    /// A candidate takes the path, and none the method.
    Method,
    Nothing,
}

impl<T> Node<T> {
    fn choose(&self, method: &str, values: &[&str]) -> Choice<'_, T> {
        let mut is_refused = false;
        for candidate in &self.candidates {
            if !candidate.accepts(values) {
                continue;
            }
            match candidate.method(method) {
                Some(value) => return Choice::Route(value, candidate),
                None => is_refused = true,
            }
        }
        if is_refused {
            Choice::Method
        } else {
            Choice::Nothing
        }
    }

    /// The candidates that take a path with these values.
    fn accepting(&self, values: &[&str]) -> impl Iterator<Item = &Candidate<T>> {
        self.candidates
            .iter()
            .filter(|candidate| candidate.accepts(values))
    }
}

impl<T> Candidate<T> {
    fn accepts(&self, values: &[&str]) -> bool {
        values.len() + usize::from(self.rest_is_empty) == self.params.len()
            && self
                .params
                .iter()
                .zip(values)
                .all(|(param, value)| param.converter.accepts(value))
    }

    fn method(&self, method: &str) -> Option<&T> {
        let exact = |wanted: &str| {
            self.methods
                .iter()
                .find(|(known, _)| known == wanted)
                .map(|(_, value)| value)
        };
        exact(method)
            .or_else(|| if method == "HEAD" { exact("GET") } else { None })
            .or_else(|| exact(ANY_METHOD))
    }

    fn capture(&self, values: &[&str], captures: &mut Captures) {
        let decoded = values
            .iter()
            .map(|value| decode(value.as_bytes()).into_owned());
        captures.extend(decoded);
        if self.rest_is_empty {
            captures.push(Vec::new());
        }
    }
}

/// Sorts methods and adds those the server answers by itself.
fn complete_allow(methods: &mut Vec<&str>) -> String {
    methods.retain(|&method| method != ANY_METHOD);
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.push("OPTIONS");
    methods.sort_unstable();
    methods.dedup();
    methods.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router(routes: &[(&str, &str)]) -> Router<usize> {
        let mut router = Router::default();
        for (number, (method, pattern)) in routes.iter().enumerate() {
            let pattern = Pattern::parse(pattern).expect("a valid pattern");
            router
                .insert(method, &pattern, number)
                .expect("no conflict");
        }
        router
    }

    #[track_caller]
    fn check(routes: &[(&str, &str)], request: (&str, &str), expected: &str) {
        let router = router(routes);
        let mut captures = Captures::new();
        let found = match router.find(request.0, request.1.as_bytes(), &mut captures) {
            Found::Route(number) => {
                let names = Pattern::parse(routes[*number].1)
                    .expect("a valid pattern")
                    .params;
                let values: Vec<String> = names
                    .iter()
                    .zip(&captures)
                    .map(|(p, v)| format!("{}={}", p.name, String::from_utf8_lossy(v)))
                    .collect();
                format!("{number} {}", values.join("&"))
            }
            Found::MethodNotAllowed(allow) => format!("405 {allow}"),
            Found::Nothing => "404".to_owned(),
        };
        assert_eq!(found.trim_end(), expected);
    }

    #[test]
    fn narrow_converters_win_and_wide_ones_catch_the_rest() {
        let routes = [
            ("GET", "/i/{slug}"),
            ("GET", "/i/{id:int}"),
            ("GET", "/i/new"),
            ("GET", "/i/{r:path}"),
        ];
        check(&routes, ("GET", "/i/7"), "1 id=7");
        check(&routes, ("GET", "/i/seven"), "0 slug=seven");
        check(&routes, ("GET", "/i/new"), "2");
        check(&routes, ("GET", "/i/a/b"), "3 r=a/b");
        check(&routes, ("GET", "/i/"), "3 r=");
        check(&routes, ("GET", "/i"), "404");
    }

    #[test]
    fn a_refusing_converter_falls_back_to_a_rest() {
        let routes = [("GET", "/i/{id:int}"), ("GET", "/{r:path}")];
        check(&routes, ("GET", "/i/x"), "1 r=i/x");
        check(
            &routes,
            ("GET", "/i/9999999999999999999"),
            "1 r=i/9999999999999999999",
        );
    }

    #[test]
    fn encoded_slashes_do_not_separate_and_are_decoded_once() {
        let routes = [("GET", "/f/{name}"), ("GET", "/caf\u{e9}"), ("GET", "/a b")];
        check(&routes, ("GET", "/f/a%2Fb%252F"), "0 name=a/b%2F");
        check(&routes, ("GET", "/caf%c3%a9"), "1");
        check(&routes, ("GET", "/a%20b"), "2");
        check(&routes, ("GET", "/f/a/b"), "404");
    }

    #[test]
    fn a_route_for_every_method_yields_to_one_for_the_method() {
        let router = router(&[
            ("*", "/x/{rest:path}"),
            ("GET", "/x/a"),
            ("PUT", "/x/{rest:path}"),
        ]);
        let found = |method: &str, path: &str| match router.find(
            method,
            path.as_bytes(),
            &mut Captures::default(),
        ) {
            Found::Route(number) => Some(*number),
            _ => None,
        };
        assert_eq!(found("PROPFIND", "/x/b/c"), Some(0));
        assert_eq!(found("PUT", "/x/b"), Some(2));
        assert_eq!(found("GET", "/x/a"), Some(1));
        assert_eq!(found("POST", "/x/a"), Some(0));
        assert_eq!(found("GET", "/y"), None);
        assert_eq!(router.allow_all(), "GET, HEAD, OPTIONS, PUT");
    }

    #[test]
    fn wrong_methods_learn_the_right_ones() {
        let routes = [("GET", "/a"), ("POST", "/a"), ("POST", "/b")];
        check(&routes, ("DELETE", "/a"), "405 GET, HEAD, OPTIONS, POST");
        check(&routes, ("GET", "/b"), "405 OPTIONS, POST");
        check(&routes, ("HEAD", "/a"), "0");
        check(&routes, ("get", "/a"), "405 GET, HEAD, OPTIONS, POST");
    }

    #[test]
    fn all_patterns_of_a_path_say_their_methods() {
        // Frameworks 14.
        let routes = [
            ("GET", "/users/{id:int}"),
            ("POST", "/users/{name}"),
            ("PUT", "/{rest:path}"),
        ];
        check(
            &routes,
            ("OPTIONS", "/users/5"),
            "405 GET, HEAD, OPTIONS, POST, PUT",
        );
        check(&routes, ("OPTIONS", "/users/x"), "405 OPTIONS, POST, PUT");
        check(&routes, ("POST", "/users/5"), "1 name=5");
    }

    #[test]
    fn uuids_and_floats_have_a_form() {
        let routes = [("GET", "/u/{u:uuid}"), ("GET", "/x/{x:float}")];
        check(
            &routes,
            ("GET", "/u/00000000-0000-0000-0000-00000000000f"),
            "0 u=00000000-0000-0000-0000-00000000000f",
        );
        check(&routes, ("GET", "/u/00000000"), "404");
        check(&routes, ("GET", "/x/1.5"), "1 x=1.5");
        check(&routes, ("GET", "/x/1."), "404");
    }

    #[test]
    fn the_same_route_twice_is_refused() {
        let mut router = router(&[("GET", "/a/{id}")]);
        let again = Pattern::parse("/a/{id}").expect("valid");
        assert!(router.insert("GET", &again, 1).is_err());
        let renamed = Pattern::parse("/a/{name}").expect("valid");
        assert!(router.insert("GET", &renamed, 1).is_err());
    }

    #[test]
    fn methods_of_one_path_may_name_its_parameters_differently() {
        let routes = [("GET", "/a/{id}/x"), ("POST", "/a/{name}/x")];
        check(&routes, ("GET", "/a/1/x"), "0 id=1");
        check(&routes, ("POST", "/a/1/x"), "1 name=1");
        check(&routes, ("PUT", "/a/1/x"), "405 GET, HEAD, OPTIONS, POST");
    }

    #[test]
    fn a_parameter_may_have_text_before_and_after_it_in_its_segment() {
        let routes = [
            ("GET", "/i/{name}.json"),
            ("GET", "/i/{name}"),
            ("GET", "/i/{name}.tar.gz"),
            ("GET", "/v{version:int}/{id:int}.json"),
            ("GET", "/u/@{name}"),
            ("GET", "/{r:path}"),
        ];
        check(&routes, ("GET", "/i/a.json"), "0 name=a");
        check(&routes, ("GET", "/i/a.b.json"), "0 name=a.b");
        check(&routes, ("GET", "/i/a.xml"), "1 name=a.xml");
        check(&routes, ("GET", "/i/a.tar.gz"), "2 name=a");
        check(&routes, ("GET", "/v2/7.json"), "3 version=2&id=7");
        check(&routes, ("GET", "/v2/x.json"), "5 r=v2/x.json");
        check(&routes, ("GET", "/u/@ann"), "4 name=ann");
        check(&routes, ("GET", "/u/ann"), "5 r=u/ann");
        check(&routes, ("GET", "/i/.json"), "1 name=.json");
        check(&routes, ("GET", "/i/a%2Ejson"), "0 name=a");
    }
}

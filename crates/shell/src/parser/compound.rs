//! Compound commands: groups, conditions, loops, `case`, `[[ … ]]`, functions.

use std::rc::Rc;

use super::syntax::Node;
use super::{Parser, SyntaxError, arithmetic};

impl Parser<'_> {
    pub(super) fn compound(&mut self) -> Result<Option<Node>, SyntaxError> {
        if self.starts("((") && self.is_arithmetic(2) {
            self.at += 2;
            return self.arithmetic().map(|parts| Some(Node::Words(vec![arithmetic(parts)])));
        }
        if self.eat("(") {
            let inner = self.list(&[])?;
            self.close(")")?;
            return Ok(Some(Node::Subshell(Box::new(inner))));
        }
        if self.eat_word("{") {
            let inner = self.list(&["}"])?;
            self.close("}")?;
            return Ok(Some(inner));
        }
        if self.eat_word("if") {
            return self.conditional().map(Some);
        }
        if self.eat_word("while") || self.eat_word("until") {
            let condition = self.list(&["do"])?;
            return Ok(Some(Node::Loop(vec![condition, self.body()?])));
        }
        if self.eat_word("for") || self.eat_word("select") {
            return self.for_loop().map(Some);
        }
        if self.eat_word("case") {
            return self.case().map(Some);
        }
        if self.eat_word("[[") {
            return self.test().map(Some);
        }
        if self.eat_word("coproc") {
            self.blanks();
            let save = self.at;
            let named = self.name().is_some() && self.peek() == Some(' ') && {
                self.blanks();
                self.starts("{") || self.starts("(")
            };
            if !named {
                self.at = save;
            }
            return self.command().map(|node| Some(Node::Subshell(Box::new(node))));
        }
        if self.eat_word("function") {
            self.blanks();
            let Some(name) = self.plain_word() else { return self.fail("a function's name is missing") };
            self.blanks();
            if self.eat("(") {
                self.blanks();
                self.close(")")?;
            }
            return self.function(name).map(Some);
        }
        self.short_function()
    }

    /// `name () body`
    fn short_function(&mut self) -> Result<Option<Node>, SyntaxError> {
        let save = self.at;
        if let Some(name) = self.plain_word() {
            self.blanks();
            if self.eat("(") {
                self.blanks();
                if self.eat(")") {
                    return self.function(name).map(Some);
                }
                return self.fail("unexpected `(`");
            }
        }
        self.at = save;
        Ok(None)
    }

    fn function(&mut self, name: String) -> Result<Node, SyntaxError> {
        self.gaps();
        let body = self.command()?;
        Ok(Node::Function { name, body: Rc::new(body) })
    }

    pub(super) fn close(&mut self, what: &'static str) -> Result<(), SyntaxError> {
        if self.eat(what) { Ok(()) } else { self.fail(&format!("`{what}` is missing")) }
    }

    fn expect_word(&mut self, word: &'static str) -> Result<(), SyntaxError> {
        self.gaps();
        if self.eat_word(word) { Ok(()) } else { self.fail(&format!("`{word}` is missing")) }
    }

    fn body(&mut self) -> Result<Node, SyntaxError> {
        self.gaps();
        if self.eat_word("{") {
            let body = self.list(&["}"])?;
            self.close("}")?;
            return Ok(body);
        }
        self.expect_word("do")?;
        let body = self.list(&["done"])?;
        self.expect_word("done")?;
        Ok(body)
    }

    fn conditional(&mut self) -> Result<Node, SyntaxError> {
        let mut branches = vec![self.list(&["then"])?];
        self.expect_word("then")?;
        loop {
            branches.push(self.list(&["elif", "else", "fi"])?);
            if self.eat_word("elif") {
                branches.push(self.list(&["then"])?);
                self.expect_word("then")?;
            } else if !self.eat_word("else") {
                self.expect_word("fi")?;
                return Ok(Node::Branches(branches));
            }
        }
    }

    fn for_loop(&mut self) -> Result<Node, SyntaxError> {
        self.blanks();
        if self.eat("((") {
            let parts = self.arithmetic()?;
            self.blanks();
            self.eat(";");
            let body = self.body()?;
            return Ok(Node::Loop(vec![Node::Words(vec![arithmetic(parts)]), body]));
        }
        let Some(name) = self.name() else { return self.fail("a loop's variable is missing") };
        self.gaps();
        let mut words = None;
        if self.eat_word("in") {
            let mut list = Vec::new();
            loop {
                self.blanks();
                match self.word()? {
                    Some(word) => list.push(word),
                    None => break,
                }
            }
            words = Some(list);
        }
        self.blanks();
        self.eat(";");
        let body = Box::new(self.body()?);
        Ok(Node::For { name, words, body })
    }

    fn case(&mut self) -> Result<Node, SyntaxError> {
        self.blanks();
        let Some(subject) = self.word()? else { return self.fail("what is compared is missing") };
        self.expect_word("in")?;
        let mut branches = vec![Node::Words(vec![subject])];
        loop {
            self.gaps();
            if self.eat_word("esac") {
                return Ok(Node::Branches(branches));
            }
            self.eat("(");
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                match self.word()? {
                    Some(word) => patterns.push(word),
                    None => return self.fail("a pattern is missing"),
                }
                self.blanks();
                if !self.eat("|") {
                    break;
                }
            }
            self.close(")")?;
            branches.push(Node::Words(patterns));
            branches.push(self.list(&["esac"])?);
            self.gaps();
            if !(self.eat(";;&") || self.eat(";;") || self.eat(";&")) && self.at_word(&["esac"]).is_none() {
                return self.fail("`;;` is missing");
            }
        }
    }

    /// `[[ … ]]`: only what is expanded in it matters.
    fn test(&mut self) -> Result<Node, SyntaxError> {
        let mut words = Vec::new();
        loop {
            self.gaps();
            if self.eat_word("]]") {
                return Ok(Node::Test(words));
            }
            if self.eat("&&")
                || self.eat("||")
                || self.eat("(")
                || self.eat(")")
                || self.eat("<")
                || self.eat(">")
                || self.eat("|")
            {
                continue;
            }
            match self.word()? {
                Some(word) => words.push(word),
                None => return self.fail("`]]` is missing"),
            }
        }
    }
}

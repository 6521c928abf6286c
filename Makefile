# Every target works as the first command in a fresh clone: it makes its own .venv.
# Needs Python 3.10 or newer with venv; a C compiler for the C engine (without one gdsfw runs its Python loop).

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
# pip takes members of this repository only as paths; by name it would ask an index for them.
MEMBERS := ./gdsfw-core ./gdsfw-posix ./gdsfw-cufile ./gdsfw-hipfile
NATIVE  := $(wildcard gdsfw-core/native/*.[ch] gdsfw-core/native/include/*.h) \
           gdsfw-core/native/CMakeLists.txt gdsfw-core/native/engine.map

.PHONY: help run test bench lint docs try-backend format clean

help:
	@echo "make run     install into .venv and run examples/quickstart.yaml on real files"
	@echo "make test    the whole test suite (ARGS='-k NAME' for a part)"
	@echo "make bench   gdsfw beside fio and a bare C loop (ARGS='--help' for choices)"
	@echo "make lint    ruff, mypy, codespell"
	@echo "make docs    the documentation as a site in build/site"
	@echo "make try-backend   gdsfw new-backend from wheels in a fresh environment: install, run, conformance kit"
	@echo "make format  let ruff format the code"
	@echo "make clean   remove .venv and what builds left"

run: $(VENV)/.installed
	$(BIN)/gdsfw run examples/quickstart.yaml --backend posix $(ARGS)

test: $(VENV)/.developing
	$(BIN)/python -m pytest $(ARGS)

bench: $(VENV)/.developing
	$(BIN)/python benchmarks/run.py $(ARGS)

lint: $(VENV)/.developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

# The variable silences what the theme says of another version of MkDocs than the one in use.
docs: $(VENV)/.developing
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

try-backend:
	PYTHON=$(PYTHON) examples/backends/try-new-backend.sh

format: $(VENV)/.developing
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist gdsfw-*/build gdsfw-*/dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Editable, so that only a change of the C sources or of a pyproject.toml asks for another install.
$(VENV)/.installed: $(NATIVE) $(MEMBERS:%=%/pyproject.toml) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet $(MEMBERS:%=-e %)
	@touch $@

$(VENV)/.developing: pyproject.toml $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

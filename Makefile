# `make book` and `make test` do all their own set-up: they need Python 3.11 or newer, and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
JOBS ?= 2
PORT ?= 8000
NB ?= $(wildcard book/*.ipynb)

# One thread per process where processes run side by side; stored outputs are made the same way they are checked.
unit coverage notebooks execute colab: export OMP_NUM_THREADS ?= 1

BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help book shots pdf test lint unit coverage notebooks colab execute twins address format lab serve clean distclean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The stamp is written last, so an install that is cut short is taken up again by the next run.
$(READY): requirements.txt pyproject.toml
	@say() { echo "$$1" >&2; exit 1; }; \
	"$(PYTHON)" -c "" 2>/dev/null || say "lapbook needs Python 3.11 or newer, but '$(PYTHON)' does not run: install it or name another with PYTHON=/path/to/python."; \
	"$(PYTHON)" -c "import sys; sys.exit(sys.version_info < (3, 11))" || say "lapbook needs Python 3.11 or newer, but '$(PYTHON)' is older: name another with PYTHON=/path/to/python."; \
	"$(PYTHON)" -c "import venv, ensurepip" 2>/dev/null || say "'$(PYTHON)' lacks the venv module: install it (on Debian or Ubuntu: apt-get install python3-venv) or name another with PYTHON=/path/to/python."
	@rm -f $@
	@echo "Setting up .venv; this is done once and takes some minutes."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

# Built from the outputs stored in the notebooks, anew each time: an incremental build forgets old warnings.
book: $(READY)  ## build the book into _build/html, warnings are errors
	@rm -rf _build
	@$(BIN)/jupyter-book build . -W -n --keep-going --quiet
	@echo "The book is built. Open $(CURDIR)/_build/html/index.html, or run 'make serve'."

shots: $(READY)  ## pictures of three pages on a phone, light and dark, menu shut and open, into _build/shots; needs Chromium
	@test -d _build/html || $(MAKE) --no-print-directory book
	@$(BIN)/python tools/shots.py

pdf: $(READY)  ## print the built book into _build/pdf, page by page and as one book; needs Chromium
	@test -d _build/html || $(MAKE) --no-print-directory book
	@$(BIN)/python tools/pdf.py

test: lint book unit notebooks colab  ## lint, build the book, run unit and browser tests, run every notebook here and as on Colab

lint: $(READY)  ## ruff on code and notebooks, mypy on the package, notebooks in canonical form
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy lapbook
	@$(BIN)/python tools/notebooks.py check

unit: $(READY)  ## pytest without the notebooks; the browser tests look at the book as last built
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --ignore tests/test_colab.py

coverage: $(READY)  ## the unit tests again, with the lines of lapbook that they run; less than 90 % is an error
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --ignore tests/test_colab.py --cov=lapbook --cov-report=term-missing:skip-covered --cov-fail-under=90

notebooks: $(READY)  ## run every notebook and compare with its stored outputs
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --nbval --nbval-current-env --nbval-cell-timeout 120 book
	@echo "Once more, the chapter on continuous control as on a machine without PyBullet:"
	@PYTHONPATH=tools/without_pybullet $(BIN)/python -m pytest -q --nbval --nbval-current-env --nbval-cell-timeout 120 book/06-continuous-control.ipynb

colab: $(READY)  ## run every twin alone, in an environment that stands for Google Colab
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests/test_colab.py

execute: $(READY)  ## run notebooks again and store their outputs; NB="book/01-….ipynb" for some
	@$(BIN)/python tools/notebooks.py execute $(NB)

format: $(READY)  ## ruff's fixes and formatting, and notebooks into canonical form, without running them
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/python tools/notebooks.py format $(NB)

twins: $(READY)  ## write chapters/ from book/: the same notebooks in plain Markdown
	@$(BIN)/python tools/twins.py

address: $(READY)  ## change the repository's address everywhere: URL=https://github.com/OWNER/NAME
	@$(BIN)/python tools/address.py $(URL)

lab: $(READY)  ## open JupyterLab on the first chapter
	@$(BIN)/jupyter lab chapters/01-states-as-a-graph.ipynb

serve: $(READY)  ## serve the built book on this machine; PORT=8000
	@test -d _build/html || $(MAKE) --no-print-directory book
	@echo "http://localhost:$(PORT)/ (stop with Ctrl-C)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

clean:  ## remove what was built, keep .venv
	@rm -rf _build dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
	@find book chapters lapbook tests tools benchmarks -depth \
		\( -name __pycache__ -o -name .ipynb_checkpoints \) -exec rm -rf {} +

distclean: clean  ## remove .venv too
	@rm -rf .venv

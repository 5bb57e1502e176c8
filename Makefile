# SpMV on GPUs in ten steps. `make help` lists what there is to do.
include common/build/build.mk
# A reader's version of a step's kernel: make bench KERNEL=STEP:FILE measures it; all else is the step's.
ifneq ($(KERNEL),)
  OWN_STEP := $(firstword $(subst :, ,$(KERNEL)))
  ifeq ($(findstring :,$(KERNEL))$(filter-out bench,$(MAKECMDGOALS)),:)
    ifeq ($(filter $(OWN_STEP),$(STEPS)),)
      $(call refuse,KERNEL=$(KERNEL): no step is called $(OWN_STEP); for example KERNEL=03_csr_vector:mine.cuh)
    endif
    OWN_FILE := $(shell own=$(call typed,KERNEL); printf '%s' "$${own#*:}")
    OWN := $(shell python3 $(ROOT)/common/coursework/mine.py $(ROOT)/$(OWN_STEP) $(call quoted,$(OWN_FILE)) $(call quoted,$(PWD)) $(ROOT)/build/mine)
    $(if $(OWN),,$(shell false $(or_quit))$(error KERNEL=$(value KERNEL) cannot be used))
  else
    $(call refuse,KERNEL=$(KERNEL): name the step of which it is a version: make -C 03_csr_vector run KERNEL=$(KERNEL))
  endif
endif

include 10_multigpu/programs.mk

PRECISION ?= f64
SPMV := $(OUT)/spmv
TESTS := $(OUT)/tests
ifneq ($(OWN),)
  # build/mine/KEY/STEP/stage.cu, and a program that has it beside every step.
  SPMV := $(OUT)/mine/$(word 3,$(subst /, ,$(patsubst $(ROOT)/%,%,$(firstword $(OWN)))))/spmv-all
$(SPMV): $(call object,$(OWN))
$(call object,$(OWN)): private WARNINGS += -Wfatal-errors -Wno-unused-parameter
endif

$(SPMV): $(common_objects) $(call object,$(MAIN) $(call stage_sources,$(STEPS)))
	$(link)
C_INTERFACE := $(ROOT)/06_pcsr/one_pass/c_interface.cu
$(TESTS): LIBRARIES += $(TEST_LIBRARIES)
$(TESTS): $(common_objects) $(call object,$(TEST_MAIN) $(TEST_SOURCES) $(call stage_sources,$(STEPS)) $(call step_test_sources,$(STEPS)) \
  $(C_INTERFACE))
	$(link)

# The common program with kernels that are wrong: it must find them out.
BROKEN := $(OUT)/broken/spmv
$(BROKEN): $(common_objects) $(call object,$(MAIN) $(ROOT)/common/tests/broken.cu)
	$(link)

# The examples of step 06's public header, linked as everything is; and what compares it with cuSPARSE, on GPUs.
EXAMPLES := $(OUT)/conjugate_gradients $(OUT)/first_product
BESIDE := $(if $(filter cuda,$(BACKEND)),$(OUT)/beside_cusparse)
$(EXAMPLES) $(BESIDE): $(OUT)/%: $(common_objects) $(call object,$(ROOT)/06_pcsr/one_pass/example/%.cu)
	$(link)

.PHONY: help setup size run test try watch data mkl cusparse info list build build-programs evidence readmes clean format check-format fuzz \
  counting-cost learn hint test-learn slides questions test-questions bench figures pictures program report site test-site test-plots handout grade \
  test-coursework test-watch browser test-browser test-traces notebook test-notebook test-commands compile_commands lint

# What a reader needs; ALL=1: what teachers, and those who measure or change something, need, too.
FIRST := run learn program watch test info bench handout
help:  ## this list (ALL=1: of all targets)
	@awk -F ':.*##  *' -v first=' $(FIRST) ' -v all='$(filter 1,$(ALL))' \
	  '/^[a-z0-9_-]+:.*## / && (all || index(first, " " $$1 " ")) { printf "  make %-16s %s\n", $$1, $$2 }' Makefile
	@$(if $(filter 1,$(ALL)),,echo '  make help ALL=1       all other targets: questions and slides, grading, figures, checks')
	@echo
	@echo '  MATRIX=path.mtx.gz | stencil2d:1000x1000 | scircuit   PRECISION=f32 | f64'
	@echo "  ARGS=\"--kernel 'csr_*' --json out.jsonl\"               BACKEND=cpu | cuda"
	@echo '  KERNELS="csr_scalar csr_vector": what make run and make watch show'
	@echo '  PROFILE=1: what each line of a kernel asks of memory  (BACKEND=cpu)'
	@echo '  COUNT=0: the CPU backend without counting and checks, faster'
	@echo
	@echo '  make -C 03_csr_vector run                              one step alone; help lists what else a step has:'
	@echo '  make -C 03_csr_vector run KERNEL=mine.cuh              your version of a kernel beside its own'
	@echo '  make -C 03_csr_vector check                            points: right, safe, and little asked of memory?'

run: $(SPMV)  ## one kernel per step, run and verified on MATRIX (ALL=1: every kernel, on three matrices)
	@$(SPMV) $(if $(MATRIX),--matrix $(call typed,MATRIX)) --precision $(PRECISION) $(kernel_option) \
	  $(if $(filter 1,$(PROFILE)),--profile,$(if $(filter 1,$(ALL)),--wide,--ladder)) $(ARGS) $(or_quit)
	@$(if $(filter 1,$(ALL) $(PROFILE)),,echo; echo 'Next: make learn                      eleven puzzles, then the exercise of each step'; \
	  echo '      make -C 03_csr_vector run       a step: its lesson is the README.md beside it'; \
	  echo '      make run ALL=1                  every kernel, on three matrices'; \
	  echo '      make run MATRIX=file.mtx.gz     your matrix'; \
	  echo '      make help                       everything else')

# The steps' tests, which carry their numbers as tags, and all others ([.] are hidden tests, which other tests call) run
# beside the scripts: each of the three keeps one processor busy. STEP_TESTS= leaves out what the steps' own
# make test runs.
STEP_TAGS := $(foreach s,$(STEPS),[$(firstword $(subst _, ,$(s)))])
STEP_TESTS = $(TESTS) '$(subst $() ,$(comma),$(STEP_TAGS))'
test: $(TESTS) $(SPMV) $(BROKEN) $(EXAMPLES) $(PROGRAMS_10)  ## all tests
	@$(STEP_TESTS) >$(OUT)/steps.log 2>&1 & steps=$$!; \
	  $(TESTS) '~[.]$(subst [,~[,$(subst $() ,,$(STEP_TAGS)))' >$(OUT)/tests.log 2>&1 & tests=$$!; \
	  trap "kill $$steps $$tests; exit 130" INT TERM; status=0; \
	  bash common/tests/cli_test.sh $(SPMV) $(BROKEN) || status=1; \
	  bash common/tests/build_test.sh || status=1; \
	  bash common/tests/data_test.sh $(SPMV) || status=1; \
	  bash 06_pcsr/one_pass/example/test.sh $(EXAMPLES) || status=1; \
	  bash 06_pcsr/one_pass/package_test.sh '$(NVCC)' || status=1; \
	  $(if $(STEP_TESTS),$(test_10) || status=1;) \
	  wait $$tests || status=1; wait $$steps || status=1; cat $(OUT)/tests.log $(OUT)/steps.log; exit $$status

# EXERCISE: another one than the next, by the beginning of its name. ONCE=1: once, without waiting for changes.
LEARN = command -v python3 >/dev/null || { echo 'error: make $@ needs Python 3.9 or later (apt-get install python3)' >&2; exit 2; }; \
  python3 common/primer/learn.py
learn:  ## the next puzzle or exercise: write it in your editor, see at each save what is wrong (EXERCISE=, ONCE=1)
	@{ $(LEARN) $(if $(filter 1,$(ONCE)),--once) $(ARGS) $(EXERCISE); } $(or_quit)

hint:  ## one hint for it, and the next one when called again
	@{ $(LEARN) --hint $(EXERCISE) $(ARGS); } $(or_quit)

test-learn:  ## test the puzzles, their solutions and make learn (LEARN=full: also what is said of mistakes)
	@$(MAKE) -C common/coursework BACKEND=cpu kit
	@python3 -m unittest discover -s common/primer/tests

try:  ## both commands, and run, test and check of every step, a line each: with a GPU, with two, without
	@bash common/tests/try.sh

# FIND=worst: it opens at the worst request (common/watch/README.md).
watch: $(SPMV)  ## a page on which one or two KERNELS run on MATRIX, step by step
	@python3 common/watch/watch.py $(SPMV) $(ROOT)/build/watch/kernels.html --matrix $(call typed,MATRIX) \
	  --kernels $(call typed,KERNELS) --precision $(PRECISION) $(if $(FIND),--find $(FIND)) $(if $(TRACE),--trace $(call typed,TRACE)) $(ARGS) $(or_quit)

setup:  ## install missing libraries for the whole system, by sudo (without this they are unpacked into .deps/)
	@SPMV_DEPS=system common/build/setup.sh $(BACKEND) $(ROOT)/build/setup-$(BACKEND).mk $(or_quit)

data: $(SPMV)  ## download the papers' matrices into data/ (ARGS="scircuit cant" for some; ARGS=large makes large ones)
	@$(if $(filter large,$(ARGS)),plots/python.sh plots/measure/large_matrices.py $(filter-out large,$(ARGS)),\
	  SPMV=$(SPMV) bash common/build/data.sh $(ARGS)) $(or_quit)

mkl:  ## fetch oneMKL (250 MB) into .deps/mkl, for the kernel mkl_csr
	@bash common/peers/get.sh mkl $(or_quit)

cusparse:  ## fetch the newest cuSPARSE (230 MB) into .deps/cusparse, for the kernels cusparse_spmvop_*
	@bash common/peers/get.sh cusparse $(or_quit)

info: $(SPMV)  ## describe MATRIX: sizes, row lengths, a picture
	@$(SPMV) info $(call typed,MATRIX) $(or_quit)

list: $(SPMV)  ## the kernels and the papers they come from
	@$(SPMV) --list

fuzz:  ## feed the reader broken files for SECONDS (60; needs clang)
	@bash common/tests/fuzz.sh $(or $(SECONDS),60)

# Measuring needs the standard library only.
MEASURE = $$(SPMV_DEPS=none plots/python.sh 2>/dev/null || echo python3) plots/measure/measure.py

counting-cost: $(OUT)/spmv  ## how much slower the CPU backend is for counting
	@$(MAKE) BACKEND=cpu COUNT=0 $(ROOT)/build/cpu-uncounted/spmv
	@for matrix in stencil2d:400x400 powerlaw:60000x60000,nnz=800000 fem:8000,block=3; do for build in cpu cpu-uncounted; do bash -c \
	  "TIMEFORMAT='%1U s of CPU: $$matrix, build/$$build'; time OMP_NUM_THREADS=1 build/$$build/spmv --workers 1 -m $$matrix >/dev/null"; done; done
	@echo '  step 10: persistent kernels on 4 GPUs, whose accesses are all compared; allowed are 20 s of CPU'
	@bash -c 'ulimit -t 20; time $(ROOT)/build/cpu/spmv multigpu --matrix stencil2d:40x40 --gpus 4 --iterate 20 \
	  --exchange stores >/dev/null'


build: $(SPMV) $(TESTS) $(BROKEN) $(EXAMPLES) $(BESIDE) $(if $(HAVE_MPI),$(SPMV_MPI))  ## compile everything, run nothing

build-programs: $(SPMV) $(EXAMPLES) $(BESIDE) $(call object,$(C_INTERFACE)) $(if $(HAVE_MPI),$(SPMV_MPI))

# What clang++ would be told on the CPU backend: tools that read the file do not know all of g++'s options, nor nvcc's.
compile_commands:  ## build/compile_commands.json, for clangd, clang-tidy and editors
	@mkdir -p $(ROOT)/build
	@$(MAKE) -n V=1 BACKEND=cpu CXX=clang++ COUNTING=1 OPENMP=-fopenmp OUT=$(ROOT)/build/nothing USE_PRECOMPILED= build >$(ROOT)/build/commands.txt
	@{ echo '['; sed -nE 's/[\\"]/\\&/g; s#^(.* -c ([^ ]+[.](cpp|cu)) -o [^ ]+).*$$#{"directory": "$(ROOT)", "file": "\2", "command": "\1"},#p' \
	  $(ROOT)/build/commands.txt | sed '$$s/,$$//'; echo ']'; } >$(ROOT)/build/compile_commands.json

readmes: build  ## fill the READMEs' outputs, excerpts and tables (ARGS=--check: only compare)
	@plots/python.sh common/pages/update_readmes.py $(ARGS)

# SET (those of plots/measure/measurements.toml), MATRICES, KERNELS, PRECISIONS, LIMIT (seconds for all): plots/measure/measure.py.
# KERNEL=STEP:FILE, in the place of SET: plots/measure/mine.py.
bench: $(SPMV)  ## measure kernels on the papers' matrices into plots/results/ (SET=quick|full, LIMIT=seconds), or yours (KERNEL=STEP:FILE, MATRICES='dir/*')
	@$(MEASURE) $(or $(SET),quick) $(if $(OWN),--mine $(call quoted,$(OWN_STEP):$(call found,OWN_FILE))) --spmv $(SPMV) --matrices $(call typed,$(if $(MATRICES),MATRICES,MATRIX)) \
	  --kernels $(call typed,KERNELS) --precisions $(call typed,PRECISIONS) $(if $(LIMIT),--limit $(LIMIT)) $(ARGS) $(or_quit)

evidence: $(SPMV)  ## which records are stale or missing, and what measures them (BACKEND=cuda: notes this build's code first)
	@$(MEASURE:%measure.py=%evidence.py) --spmv $(SPMV) $(if $(filter cuda,$(BACKEND)),--update) $(ARGS)

ifneq ($(MINE),)
figures:
	@plots/python.sh plots/measure/mine.py $(call typed,MINE) $(if $(FORMAT),--format $(call typed,FORMAT)) $(ARGS) $(or_quit)
else
figures:  ## draw every figure from published and measured records, and from traces, into plots/figures/ (FORMAT=pdf | svg: for print; MINE=name: of your own kernel)
	@plots/python.sh plots/papers/figures.py $(if $(FORMAT),--format $(call typed,FORMAT)) $(ARGS)
	@$(if $(FORMAT),,$(MAKE) BACKEND=cpu pictures ARGS=)
endif

pictures: $(SPMV)  ## only those of the lessons, from traces
	@python3 common/watch/pictures.py $(SPMV) plots/figures/lessons $(ARGS)

report:  ## the results page, one HTML file to explore: build/report.html
	@plots/python.sh plots/page/report.py $(ARGS) $(or_quit)

site:  ## lessons, results, pages of runs and the one-pass API as a static site, build/site
	@$(MAKE) BACKEND=cpu $(ROOT)/build/cpu/spmv
	@$(MAKE) report ARGS=
	@$(SLIDES) $(or_quit)
	@common/build/python.sh common/site/requirements.txt common/site/build_site.py $(ROOT)/build/cpu/spmv build/site $(or_quit)

test-site:  ## test the site's links
	@python3 -m unittest discover -s common/site

notebook:  ## execute common/notebook/spmv.ipynb on the last commit and store what it prints (minutes)
	@common/build/python.sh common/notebook/requirements.txt common/notebook/execute.py --write $(or_quit)

test-notebook:  ## execute it and compare
	@common/build/python.sh common/notebook/requirements.txt common/notebook/execute.py $(or_quit)

test-commands: $(SPMV)  ## run the commands of the pages that nothing else runs (minutes)
	@python3 common/pages/run_commands.py

test-plots:  ## test the scripts that measure, draw and write tables
	@plots/python.sh plots/run_tests.py

# SEED=n: once, in an order drawn from it. DEVICES=n: how many the emulator has. (common/primer/program.py)
program: export PROGRAM_SOURCE := $(value SOURCE)
program: export PROGRAM_ARGS := $(value ARGS)
program: export PROGRAM_SEED := $(SEED)
program: export PROGRAM_DEVICES := $(DEVICES)
program: export PROGRAM_NVCC := $(if $(filter cuda,$(BACKEND)),$(NVCC) -std=c++20 $(or $(CUDA_ARCHS:%=-gencode arch=compute_%,code=sm_%),-arch=native) -I$(ROOT)/common)
program:  ## compile SOURCE=mine.cu, a CUDA program with a main(), and run it with all checks (ARGS, SEED)
	@python3 common/primer/program.py $(or_quit)

# For instructors: common/coursework/README.md.
handout:  ## what students get of STEP, in handouts/ or OUTPUT: the kernels' bodies taken out
	@python3 common/coursework/handout.py '$(or $(STEP),$(call refuse,which step? For example STEP=03_csr_vector))' $(if $(OUTPUT),$(call typed,OUTPUT)) $(or_quit)

SLIDES = common/build/python.sh common/coursework/slides_requirements.txt common/coursework/slides.py build/slides
slides:  ## render the five lectures of common/coursework/slides_*.md into build/slides
	@$(SLIDES) $(or_quit)

# (SEED is a variable of step 10's, too: what is given to it here reaches no command of a question.)
questions:  ## 70 questions for Moodle (GIFT) and Canvas (QTI) into build/questions, answers by SEED
	@$(MAKE) BACKEND=cpu $(ROOT)/build/cpu/spmv && $(MAKE) -C common/coursework BACKEND=cpu kit
	@env -u MAKEFLAGS -u SEED -u ARGS python3 common/coursework/questions.py --seed $(or $(SEED),1) $(ARGS) $(or_quit)

test-questions:  ## test the questions' formats (make questions runs the commands that prove their answers)
	@python3 -m unittest discover -q -s common/coursework -p test_questions.py

grade:  ## grade the students' kernels of STEP in the directory SUBMISSIONS (SEED=n, OUTPUT, TRUSTED=1, STRICT=1)
	@python3 common/coursework/grade.py '$(or $(STEP),$(call refuse,which step? For example STEP=03_csr_vector))' $(if $(SUBMISSIONS),$(call typed,SUBMISSIONS),$(call refuse,which submissions? SUBMISSIONS=directory)) \
	  $(if $(OUTPUT),--output $(call typed,OUTPUT)) $(if $(SEED),--seed $(SEED)) $(if $(TRUSTED),--trusted) $(if $(STRICT),--strict) $(ARGS) $(or_quit)

# COURSEWORK=quick leaves out what runs the handout of every step, and most of the mistakes.
test-coursework:  ## test handouts and grading: all steps as handed out and solved, mistakes graded
	@$(MAKE) -C common/coursework BACKEND=cpu kit
	@COURSEWORK=$(or $(COURSEWORK),full) python3 -m unittest discover -s common/coursework

test-watch: $(SPMV) $(BROKEN)  ## test traces and what is made from them
	@WATCH_SPMV=$(SPMV) WATCH_BROKEN=$(BROKEN) python3 -m unittest discover -s common/watch

browser:  ## the kernels as WebAssembly, which make site then runs in its pages (needs emscripten)
	@command -v em++ >/dev/null || { echo 'error: make browser needs emscripten 3.1 and Node (apt-get install emscripten)' >&2; exit 2; } $(or_quit)
	@$(MAKE) -f common/watch/live/live.mk HAVE_THRUST= $(or_quit)

test-browser: $(SPMV)  ## test that module: the native program's results, under Node, in Chromium and in Firefox
	@if command -v em++ >/dev/null; then $(MAKE) browser && WATCH_SPMV=$(SPMV) python3 -m unittest discover -s common/watch -p live_test.py; \
	  else echo 'skipped: no emscripten here (apt-get install emscripten)'; fi

test-traces: $(SPMV)  ## check traces of all kernels, and of several GPUs, under three schedules (a minute)
	@WATCH=full WATCH_SPMV=$(SPMV) python3 -m unittest discover -s common/watch -k test_all_

size:  ## lines of code per room, a line counted once per 100 columns begun
	@bash common/build/size.sh

clean:  ## remove what was built
	@rm -rf build

FORMATTED := $(shell find . \( -path ./build -o -path ./handouts -o -path ./plots/mine -o -path './.*' \) -prune -o \( -name '*.hpp' -o \
  -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.js' -o -name 'cuda_runtime.h' \) -print)
RUFF_FORMAT := if command -v ruff >/dev/null; then ruff format --quiet
format:  ## format all sources
	@clang-format -i $(FORMATTED)
	@$(RUFF_FORMAT); else echo 'skipped: no ruff to format Python (pip install $(call pinned,ruff))'; fi
# The versions of the formatter and of the linter: .pre-commit-config.yaml.
pinned = $(shell sed -nE 's/.*\[($(1)==[0-9.]+)\].*/\1/p' .pre-commit-config.yaml)
BASE ?= origin/main
check-format:  ## fail if a source is not formatted, a page too long, or a link dead; warn of long subjects since BASE
	@python3 common/pages/check_pages.py
	@git log --format='%h %s' '$(BASE)..HEAD' 2>/dev/null | awk '{ hash = $$1; sub(/^[^ ]+ /, "") } length > 72 { \
	  print "warning: the subject of commit " hash " has " length " characters, more than 72" }'
	@clang-format --version | grep -q ' $(basename $(basename $(subst clang-format==,,$(call pinned,clang-format))))[.]' || \
	  echo 'warning: another version than $(call pinned,clang-format), which the sources are formatted with'
	@python3 common/build/check_rooms.py
	@clang-format --dry-run -Werror $(FORMATTED)
	@$(RUFF_FORMAT) --diff; else echo 'skipped: no ruff to check the format of Python (pip install $(call pinned,ruff))'; fi

lint:  ## ruff reads the Python and node the JavaScript, where they are installed
	@if command -v ruff >/dev/null; then ruff check --quiet; else echo 'skipped: no ruff (pip install $(call pinned,ruff))'; fi
	@if command -v node >/dev/null; then printf '%s\n' common/*/*.js plots/*/*.js | xargs -n 1 node --check; \
	  else echo 'skipped: no node to check JavaScript'; fi

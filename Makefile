# SPDX-License-Identifier: Apache-2.0
# make run [MODEL=file.yaml]   build, then train the model (default: the quickstart)
# make test                    build, then all tests
# make build                   packages (named; installed if that is possible), then the build in build/
# make test-matrix             other compilers, processors, locales, users: slow, for now and then
# make install                 meson install (DESTDIR= and -Dprefix as usual)
# make clean                   forget build/

MODEL ?= configs/quickstart.yaml
BUILD ?= build
# warnings of a compiler that we have not met stop nobody from building
MESON_FLAGS ?= -Dwerror=false

.PHONY: run program test build packages test-matrix install clean

run: program
	$(BUILD)/seqlstm run $(MODEL)

program: packages $(BUILD)/build.ninja
	@ninja -C $(BUILD) program

test: build
	tools/run-tests.sh $(BUILD)

build: packages $(BUILD)/build.ninja
	@ninja -C $(BUILD)

packages:
	@tools/packages.sh tests

$(BUILD)/build.ninja:
	meson setup $(MESON_FLAGS) $(BUILD)

test-matrix: build
	tools/test-matrix.sh

install: build
	meson install -C $(BUILD)

clean:
	rm -rf $(BUILD)

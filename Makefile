# SPDX-License-Identifier: Apache-2.0
# make run [MODEL=file.yaml]   build the program, then train the model (default: the quickstart). CUDA=1 also builds the
#                              CUDA backends where no NVIDIA driver is found, CUDA=0 leaves them out where one is
# make build                   build all that is installed
# make install                 build all that is installed, then install it (DESTDIR= as usual)
# make test                    build all with the tests, then run them
# make test-matrix             other compilers, build types, processors, locales, users: slow, for now and then
# make docs                    the documentation as a site, in build/site; needs mkdocs and mkdocs-material
# make deb                     Debian packages, in build/deb; needs debhelper, and what packaging/debian/control names
# make clean                   delete build/
#
# All but docs, deb and clean install the packages that are missing, if they can, or name them. MESON_FLAGS are the
# options of a new build folder, such as -Dprefix=/usr.

MODEL ?= configs/quickstart.yaml
BUILD ?= build
MESON_FLAGS ?=

.PHONY: run program build install tests test test-matrix docs deb packages packages-tests clean

run: program
	$(BUILD)/seqlstm run $(MODEL)

program: packages $(BUILD)/build.ninja
	@CUDA=$(CUDA) tools/build-program.sh $(BUILD)

build: packages $(BUILD)/build.ninja
	@ninja -C $(BUILD) installed

install: build
	meson install -C $(BUILD) --no-rebuild

tests: packages-tests
	@tools/setup-tests.sh $(BUILD) $(MESON_FLAGS)
	@ninja -C $(BUILD)

test: tests
	tools/run-tests.sh $(BUILD)

test-matrix: tests
	tools/test-matrix.sh

docs:
	/usr/bin/python3 packaging/site.py $(BUILD)/site

deb:
	packaging/deb.sh $(BUILD)/deb

packages:
	@tools/packages.sh

packages-tests:
	@tools/packages.sh tests

$(BUILD)/build.ninja:
	meson setup $(MESON_FLAGS) $(BUILD)

clean:
	rm -rf $(BUILD)

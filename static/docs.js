// The page /docs: Swagger UI shows /openapi.json for reading only. It sends no calls: people are signed in on this
// origin, and calls are made with a client.
"use strict";

(() => {
  const ours = ({ React }) => {
    const make = React.createElement;
    const nothing = () => null;

    // The viewer's own layout has a title, a choice of servers and forms for credentials on top.
    const Page = ({ specSelectors, getComponent }) => {
      const status = specSelectors.loadingStatus();
      const part = (name) => make(getComponent(name, true));
      if (status === "failed" || status === "failedConfig") {
        return make("p", { className: "alert", role: "alert" }, "The document could not be loaded. ",
          make("a", { href: "" }, "Try again"));
      }
      if (status !== "success") return make("p", { className: "muted", role: "status" }, "Loading the document…");
      const Markdown = getComponent("Markdown", true);
      return make("div", { className: "swagger-ui" },
        make("p", null, make("a", { href: "#list" }, "Go to the operations")),
        make("div", { className: "intro" }, make(Markdown, { source: specSelectors.info().get("description") })),
        make("h2", { id: "list" }, "Operations"),
        part("operations"));
    };

    // Errors look alike, and the introduction shows one: here their codes are enough.
    const brief = (Whole, { getComponent }) => (props) => {
      if (Number(props.code) < 400) return make(Whole, props);
      const Markdown = getComponent("Markdown", true);
      return make("tr", { className: "response" },
        make("td", { className: "response-col_status" }, props.code),
        make("td", { className: "response-col_description" },
          make(Markdown, { source: props.response.get("description") })));
    };

    // Examples are shown as they are: the viewer's colours are the same in light and in dark.
    const Code = ({ children, className }) => make("pre", { className: `code ${className || ""}` }, children);

    // Nobody can reach a link within a button by keyboard. The address follows the open operation anyway.
    const Plain = ({ text }) => make("span", null, text);

    return {
      components: {
        Page,
        DeepLink: Plain,
        deepLink: Plain,
        AuthorizeOperationBtnContainer: nothing,
        authorizeOperationBtn: nothing,
        SyntaxHighlighter: Code,
      },
      wrapComponents: { response: brief },
    };
  };

  // Lines end at the joints of an address rather than within a word.
  const part = (code) => {
    code.dataset.parted = "";
    const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      const before = text.data.search(/[^/:\s]\/[^/]|\w[.@?&=]\w/);
      if (before >= 0) text.splitText(before + 1).before(document.createElement("wbr"));
    }
  };

  // For screen readers: names choices that have none, and tables that the viewer marks as regions without a name.
  const viewer = document.getElementById("viewer");
  const mend = () => {
    for (const choice of viewer.querySelectorAll("select:not([aria-label])")) choice.setAttribute("aria-label", "Example");
    for (const code of viewer.querySelectorAll(".renderedMarkdown code:not([data-parted])")) part(code);
    for (const table of viewer.querySelectorAll("table[role=region]")) table.removeAttribute("role");
  };
  new MutationObserver(mend).observe(viewer, { childList: true, subtree: true });

  SwaggerUIBundle({
    url: "/openapi.json",
    domNode: viewer,
    layout: "Page",
    plugins: [ours],
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: -1,
    displayRequestDuration: false,
    supportedSubmitMethods: [],
    validatorUrl: null,
  });
})();

// A browser at an app: keeps the app's cookies, follows no redirect.
export class Visitor {
  constructor(ask = (url, options) => fetch(url, { ...options, redirect: "manual" })) {
    this.ask = ask;
    this.cookies = new Map();
  }

  async go(url, options = {}) {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await this.ask(url, { ...options, headers: { ...options.headers, cookie } });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      if (value) this.cookies.set(name, value);
      else this.cookies.delete(name);
    }
    return answer;
  }
}

export class Failed extends Error {
  constructor(code) {
    super(`the app says ${code}`);
    this.code = code;
  }
}
